"""Optional packages, and the extra of dphh that installs each."""

from __future__ import annotations

EXTRAS = {
    "altair": "plot",
    "cryptography": "testing",
    "deltalake": "delta",
    "duckdb_cli": "shell",
    "ipywidgets": "notebook",
    "matplotlib": "examples",
    "py4j": "spark",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
    "starlette": "serve",
    "uvicorn": "serve",
}


def missing_extra(problem: ModuleNotFoundError) -> str | None:
    """What to install if the missing package belongs to an extra, else None."""
    package = (problem.name or "").split(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    return f"this needs the package {package}, which is not installed: pip install 'dphh[{extra}]'"

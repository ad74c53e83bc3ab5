"""Optional packages, and the extra of dphh that installs each."""

from __future__ import annotations

#: For each package whose import says nothing else where it is missing, the extra that installs it.
EXTRAS = {"cryptography": "testing", "starlette": "serve", "uvicorn": "serve"}


def extra_to_install(problem: ModuleNotFoundError) -> str | None:
    """A sentence that says which extra to install; None if no extra has the missing package."""
    package = (problem.name or "").split(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return None
    return f"this needs the package {package}, which is not installed: pip install 'dphh[{extra}]'"

"""Sends dphh's own package to the executors of Spark Connect, so that servers need not install
it."""

from __future__ import annotations

import tempfile
import zipfile
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

#: The packages to send; each may be in another folder of this machine.
_PACKAGES = ("dphh", "dphh.udfs", "dphh.sql")


def send_dphh(spark: SparkSession) -> None:
    """Send dphh as a zip file from which Python imports, for this session only."""
    with tempfile.TemporaryDirectory(prefix="dphh-artifact-") as folder:
        path = Path(folder) / "dphh_of_the_driver.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            for package in _PACKAGES:
                _add_package(packed, package)
        spark.addArtifacts(str(path), pyfile=True)


def _add_package(packed: zipfile.ZipFile, package: str) -> None:
    (home, *_) = import_module(package).__path__
    for file in sorted(each for each in Path(home).rglob("*") if each.suffix in (".py", ".sql")):
        name = f"{package.replace('.', '/')}/{file.relative_to(home).as_posix()}"
        if name not in packed.namelist():
            packed.write(file, name)

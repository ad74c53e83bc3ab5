"""dphh's own package, sent to the executors of Spark Connect: a server needs only what it uses."""

from __future__ import annotations

import tempfile
import zipfile
from importlib import import_module
from pathlib import Path

from pyspark.sql import SparkSession

#: Packages, wherever each of them stands on this machine.
_PACKAGES = ("dphh", "dphh.udfs", "dphh.sql")


def send_dphh(spark: SparkSession) -> None:
    """As a zip file that Python imports from, for this session alone."""
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

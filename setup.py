"""Packages are found, not listed: `sql/` and `udfs/` stand beside `dphh/` and install inside it."""

from setuptools import find_packages, setup

BESIDE = {"dphh.sql": "sql", "dphh.udfs": "udfs"}
FOLDERS = [f"dphh.udfs.{name}" for name in find_packages("udfs")]

setup(
    packages=[*find_packages(include=["dphh", "dphh.*"]), *BESIDE, *FOLDERS],
    package_dir={"dphh": "dphh", **BESIDE},
)

"""Folders whose files register what they define: importing all of them makes all of it known."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def import_folder(package: str) -> None:
    for found in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{found.name}")

"""Imports all modules of a folder, because each registers what it defines when it is imported."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def import_folder(package: str) -> None:
    for found in iter_modules(import_module(package).__path__):
        import_module(f"{package}.{found.name}")

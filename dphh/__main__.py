"""`dphh` and `python -m dphh`: the command line in a process of its own."""

from __future__ import annotations

from dphh.cli import main as command

if __name__ == "__main__":
    command()

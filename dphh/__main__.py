"""`dphh` and `python -m dphh`: the command line in a process of its own."""

from __future__ import annotations

from dphh.asking.without_pandas import leave_pandas_out
from dphh.cli import main


def command() -> None:
    leave_pandas_out()
    main()


if __name__ == "__main__":
    command()

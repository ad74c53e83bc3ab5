"""What the tests of the command line share."""

import sys

import pytest

from dphh.cli import main


@pytest.fixture
def dphh(monkeypatch, capfd):
    """Run the entry point itself, for (code, out, err); standard error is no terminal here."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dphh", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as left:
            code = left.code
        return code, *capfd.readouterr()

    return run

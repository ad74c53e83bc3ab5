"""`python -m dphh`."""

from dphh.cli import main

main()

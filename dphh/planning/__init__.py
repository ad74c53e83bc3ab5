"""Tools to use before anything is spent: check and compare."""

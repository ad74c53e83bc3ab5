"""Mistakes planted on purpose, each in a copy of the tree, and the tests that must catch it.

`make mutants` plants them one after the other. A mutant that no test catches, or whose text is
nowhere or at several places of the source, fails. To add one, write a `Mutant` into the list of
its kind: the text to replace must stand once in the source, wherever that is, so that moved code
needs no change here.
"""

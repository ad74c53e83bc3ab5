"""Mistakes planted on purpose, each in a copy of the tree, and the tests that must catch it.

`make mutants` plants them one after the other. A mutant that no test catches, or that has no place
or several in the source, fails. To add one, write it into the list of its kind:

    a cap may be passed by a little                        its name
    in fits                                                a function, Class.method or global; or
                                                           no line: then that of the mutant above
    - <= cap.delta                                         what stands there, once
    + <= cap.delta * 1.01                                  what takes its place; may be left out
    by tests/ledger/test_ledger_caps.py::test_what_is_...  which must fail; may be several lines

Where several files have what is named so, the end of a path tells which: `duckdb/trie.py:Trie.f`.
In SQL the file is always named, with a colon and the CTE, table or macro if there is one. Comments
and the layout of the source are not compared.
"""

"""What each verb does: a folder a verb, which reads like its paper.

`price.py` turns parameters into levels, events and a statement; `run.py` runs the levels on a host
(`levels.py`, where a verb has kinds of its own, says what a plan fixes for each). A level's queries
are in `sql/` under the verb's name, what a user adds in `udfs/rules/`. May import: price, level,
prior, privacy, udfs, and of engines the host alone. Begin at `items/`, then `ngrams/run.py`.
"""

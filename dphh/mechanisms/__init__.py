"""What each verb does: a folder a verb, which reads like its paper.

`price.py` turns parameters into levels, events and a statement; `levels.py` says what a plan fixes
for each level; `run.py` runs the levels on a host, with a table's columns after each step, and has
the list of these steps; beside them the mathematics that only this verb needs. Queries are in
`sql/` under the same name, what a user adds in `udfs/rules/`. Set union and counts serve several
verbs. May import: price, privacy, udfs, and of engines the host alone. Begin at `items/`, then
`ngrams/run.py`.
"""

"""`trie`: TrieHH, sequences grown level by level from sampled votes.

Here belongs what a sampled vote costs (`path.py`, `path_bound.py`); the vote itself is in
`udfs/rules/votes.py`. May import `counts/` and what `mechanisms/` may. Begin at `run.py`, which is
the paper's Algorithm 1.
"""

"""TrieHH: sequences grown level by level from sampled votes.

Begin at `run.py`, which is its Algorithm 1; `path.py` has what it costs.
"""

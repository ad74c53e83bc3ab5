"""`ldp_trie`: LDP TrieHH as Gboard runs it, by subset selection (Xu et al. 2024).

Here belongs what each observer learns (`local_reports.py`, `sums.py`, `amplification.py`); how a
device answers is in `udfs/rules/reports.py`. May import what `mechanisms/` may, and no other verb.
Begin at `price.py`, whose docstring has the algorithm, then `run.py`.
"""

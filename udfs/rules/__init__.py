"""What a user adds, verb by verb, in integers within the norm that was priced.

`weights.py`: equal weights, weights in proportion, and by earlier noised weights; `forecast.py`:
the two rounds of the ladder; `counts.py`; `votes.py` (trie); `reports.py` (ldp_trie).
May import: `kernel/`, `noise/`. Begin at `weights.py`.
"""

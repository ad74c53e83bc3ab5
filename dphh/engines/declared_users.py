"""Compares the number of users given in a plan with the corpus; the difference are idle users.

The theorems use the given number, never the corpus's.
"""

from __future__ import annotations

from dphh.errors import CorpusError


def users_idle(holders: int, users: int) -> int:
    """How many of `users` users of `trie` hold no sequence."""
    if holders > users:
        raise CorpusError(
            f"users: found {users:,}, and the corpus holds more; give a public upper bound of the "
            "number of users"
        )
    return users - holders


def users_wanting(users: int, seats: int, pad: bool) -> int:
    """How many users of `ldp_trie` must be made up because the corpus has too few."""
    if users < seats and not pad:
        raise CorpusError(
            f"users_per_level, passes, max_length: need {seats:,} users, since no user is asked "
            "twice, and the corpus has fewer; ask fewer users per level, or pass pad=True to add "
            "made-up users without data"
        )
    return max(seats - users, 0)

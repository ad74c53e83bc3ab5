"""Compares the number of users given in a plan with the corpus; the difference are idle users.

The theorems use the given number, never the corpus's.
"""

from __future__ import annotations

from dphh.errors import CorpusError


def users_idle(holders: int, users: int) -> int:
    """How many of `users` users of `trie` hold no sequence."""
    if holders > users:
        raise CorpusError(
            f"users: the corpus holds more users than the {users:,} that were said; give a public "
            "number that is not below theirs"
        )
    return users - holders


def users_wanting(users: int, seats: int, pad: bool) -> int:
    """How many users of `ldp_trie` must be made up because the corpus has too few."""
    if users < seats and not pad:
        raise CorpusError(
            f"users_per_level, passes, max_length: {seats:,} users are needed, for nobody is asked "
            "twice, and the corpus holds fewer; ask fewer a level, or say pad=True to have users "
            "who hold nothing sit in for those who are wanting"
        )
    return max(seats - users, 0)

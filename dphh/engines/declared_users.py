"""Compares the number of users that a plan declares with the corpus; idle users fill the gap.

The theorems use the given number, never the corpus's.
"""

from __future__ import annotations

from dphh.errors import CorpusError


def idle_users_of_trie(holders: int, users: int) -> int:
    """How many of `users` users of `trie` hold no sequence."""
    if holders > users:
        raise more_users_than(users)
    return users - holders


def more_users_than(users: int) -> CorpusError:
    """What `trie` says where more than `users` users hold a sequence."""
    return CorpusError(
        f"users: found {users:,}, and the corpus holds more; give a public upper bound of the "
        "number of users"
    )


def missing_users_of_ldp_trie(users: int, seats: int, pad: bool) -> int:
    """How many users of `ldp_trie` must be made up because the corpus has too few."""
    if users < seats and not pad:
        raise fewer_users_than(seats)
    return max(seats - users, 0)


def fewer_users_than(seats: int) -> CorpusError:
    """What `ldp_trie` says where a corpus has fewer users than seats, and none may be made up."""
    return CorpusError(
        f"users_per_level, passes, max_length: need {seats:,} users, since no user is asked "
        "twice, and the corpus has fewer; ask fewer users per level, or pass pad=True to add "
        "made-up users without data"
    )

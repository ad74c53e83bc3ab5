"""`trie` on every engine: what its specification, `test_plain_sql.py`, does not say."""

from __future__ import annotations

import pytest

from dphh import CorpusError
from tests.engines.tries import grown_of_batches


def test_more_users_than_were_said_are_refused(engine, written):
    corpus = written([(u, "a") for u in range(6)])
    assert grown_of_batches(engine, corpus, 1, 3, users=6, batch=3)[0].rows.num_rows == 1
    with pytest.raises(CorpusError, match="users: found 5, and the corpus holds more") as said:
        grown_of_batches(engine, corpus, 1, 3, users=5, batch=3)
    assert "6" not in str(said.value)

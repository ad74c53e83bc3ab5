"""Which answers stay where they are served from, so that nobody's fill its memory."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("h11")

from dphh.gateway import server
from dphh.gateway.server import _Answer, _answers_to_drop, _Session

MB = 2**20


def session(analyst: str = "alice") -> _Session:
    return _Session(analyst, "a token")


def answer(of: _Session, size: int = MB, made: float = 0.0) -> _Answer:
    nowhere: Any = None
    return _Answer(of, nowhere, "a table", size, made)


def test_of_a_session_the_last_few_stay_for_a_while() -> None:
    one, other = session(), session()
    answers = [answer(one) for _ in range(6)] + [answer(other)] + [answer(one, made=1.0)]
    assert _answers_to_drop(answers) == answers[2::-1]
    late = [answer(one), answer(other), answer(one, made=server._KEPT_SECONDS + 1)]
    assert _answers_to_drop(late) == late[:1]


def test_of_an_analyst_so_many_bytes_stay_whatever_the_session() -> None:
    answers = [answer(session(), 200 * MB) for _ in range(4)]
    assert _answers_to_drop(answers) == answers[1::-1]
    alone = [answer(session(), 2 * server._STORED_BYTES_EACH)]
    assert _answers_to_drop(alone) == []  # the latest is to be fetched yet


def test_of_all_analysts_so_many_bytes_stay() -> None:
    answers = [answer(session(f"analyst {n}"), 250 * MB) for n in range(9)]
    assert _answers_to_drop(answers) == answers[4::-1]


def test_of_an_ended_session_none_stay() -> None:
    gone = session()
    answers = [answer(gone), answer(session())]
    gone.ended = True
    assert _answers_to_drop(answers) == answers[:1]

"""A request is one run: whoever hangs up, repeats, is killed or withdrawn meanwhile."""

import os
import signal
import subprocess
from urllib.parse import urlencode

import pytest

from tests.gateway.conftest import until


def test_those_who_ask_the_same_at_once_wait_for_one_run(place):
    asked = {"corpus": "reviews", "epsilon": 0.3, "delta": 1e-8}
    before = {who: place.spent(who)["reviews"] for who in ("alice", "bob")}
    waiting = [place.later("items", who, **asked) for who in ["alice"] * 6 + ["bob"] * 2]
    found = [each.result(240) for each in waiting]
    assert {answer.status for answer in found} == {200}
    assert len({answer.body for answer in found[:6]}) == 1 and found[6].body == found[7].body
    assert {*place.states()} == {"settled"}
    assert {who: place.spent(who)["reviews"] - runs for who, runs in before.items()} == {
        "alice": 1,
        "bob": 1,
    }


def test_the_same_request_of_changed_files_is_another_run(place):
    before = place.spent()["reviews"]
    for _ in range(2):
        assert place.items(epsilon=0.4).status == 200
    assert place.spent()["reviews"] == before + 1
    os.utime(place.folder / "reviews.parquet", (0, 0))
    assert place.items(epsilon=0.4).status == 200
    assert place.spent()["reviews"] == before + 2


ABSURD = {"corpus": "reviews", "epsilon": 1, "delta": 1e-8, "max_length": 1000}


LETTERS = {"corpus": "letters", "epsilon": 0.3, "delta": 1e-8}


def test_others_do_not_wait_for_absurd_plans(own):
    server = own.serve()
    for pays in ("", "plan/"):
        absurd = [own.later(f"{pays}trie", **ABSURD | {"max_length": 1000 - n}) for n in (1, 2)]
    assert own.ask("plan/items", "bob", **LETTERS).status == 200
    assert not any(each.done() for each in absurd)
    server.end(signal.SIGKILL)


def test_others_do_not_wait_for_anothers_run(own):
    server = own.serve()
    own.hold_up()
    waiting = own.later("items", corpus="reviews", epsilon=0.3, delta=1e-8)
    until(lambda: len(server.workers()) == 3)  # a planner, a runner, and Python's own tracker
    assert own.ask("items", "bob", **LETTERS).status == 200
    assert not waiting.done()
    server.end(signal.SIGKILL)


@pytest.mark.slow
def test_a_plan_has_seconds_of_the_processor(own):
    own.serve(time="server MOST_PRICING_SECONDS 1000")
    absurd = own.ask("plan/trie", **ABSURD)
    assert absurd.status == 503 and "give smaller options. Nothing was spent" in absurd.error
    plan = {"corpus": "reviews", "epsilon": 1, "delta": 1e-8}
    assert own.ask("plan/items", **plan).status == 200


@pytest.mark.slow
def test_a_client_that_hangs_up_loses_nothing_and_others_are_answered_meanwhile(own):
    options = own.long_request()
    own.serve()
    head = "HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n"
    gone = [own.open(f"GET /v1/ngrams?{urlencode(options)} {head}") for _ in range(3)]
    until(lambda: own.states() == ["running"])
    for client in gone:
        client.close()
    assert own.ask("ledger").status == 200
    assert own.ask("plan/items", "bob", corpus="reviews", epsilon=1, delta=1e-8).status == 200
    assert own.states() == ["running"]
    assert own.ask("ngrams", **options).status == 200
    assert own.states() == ["settled"]


@pytest.mark.slow
def test_others_wait_for_one_run_and_not_for_all_of_an_analyst(own):
    options = own.long_request()
    own.serve()
    alices = [own.later("ngrams", **options | {"epsilon": 0.1 + n / 1000}) for n in range(4)]
    until(lambda: len(own.ledger.runs()) == 1)
    assert own.items("bob", 0.3).status == 200
    assert sum(each.done() for each in alices) <= 2
    assert {each.result(240).status for each in alices} == {200}


def test_pricing_that_takes_too_long_is_to_be_asked_again_later(own):
    own.serve(time="server MOST_PRICING_SECONDS 0")
    for path in ("plan/items", "items"):
        late = own.ask(path, corpus="reviews", epsilon=0.3, delta=1e-8)
        assert (late.status, late.headers["retry-after"]) == (503, "10")
        assert "Ask again" in late.error and "Nothing was spent" in late.error
    as_table = own.items(headers={"Accept": "*/*"})
    assert as_table.status == 200 and b"Ask again" in as_table.body
    assert own.states() == []


def test_more_requests_at_once_than_are_allowed_are_told_so(own):
    own.serve()
    own.hold_up()
    reviews = {"corpus": "reviews", "delta": 1e-8}
    asked = [own.later("items", epsilon=0.01 + n / 1e6, **reviews) for n in range(11)]
    until(lambda: sum(each.done() and each.result().status == 429 for each in asked) == 3)
    refused = own.ask("ledger")
    assert refused.status == 429 and "retry-after" in refused.headers
    assert own.ask("ledger", "bob").status == 200


def is_alive(pid: int) -> bool:
    ps = ["ps", "-o", "stat=", "-p", str(pid)]
    told = subprocess.run(ps, capture_output=True, text=True, check=False)
    return told.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["stopped server", "killed server", "killed worker"])
def test_a_run_that_is_cut_short_goes_on_when_it_is_asked_for_again(own, what):
    options = own.long_request()
    server = own.serve()
    asking = own.later("ngrams", **options)
    until(lambda: own.states() == ["running"])
    workers = server.workers()
    if what == "killed worker":
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
    else:
        server.end(signal.SIGTERM if what == "stopped server" else signal.SIGKILL)
    if what == "killed server":
        assert isinstance(asking.exception(60), OSError)
    else:
        told = asking.result(60)
        was_too_quick = what == "stopped server" and told.status == 200
        assert was_too_quick or (told.status == 503 and "Ask again" in told.error)
    until(lambda: not any(map(is_alive, workers)), 30)  # no run goes on unnoticed
    assert own.spent()["long"] == 1
    if what != "killed worker":
        own.port = 0
        own.serve()
    assert own.ask("ngrams", **options).status == 200
    assert own.states() == ["settled"] and own.spent()["long"] == 1


@pytest.mark.slow
def test_a_token_withdrawn_during_a_run_is_answered_nothing_and_the_run_is_kept(own):
    options, old = own.long_request(), own.tokens["alice"]
    own.serve()
    asking = own.later("ngrams", **options)
    until(lambda: own.states() == ["running"])
    assert own.ledger.withdraw_token("alice")
    assert asking.result(240).status == 401
    own.tokens["alice"] = own.ledger.give_token("alice")
    assert own.ask("ngrams", **options).status == 200
    assert own.states() == ["settled"]
    assert own.ask("ledger", headers={"Authorization": f"Bearer {old}"}).status == 401


def test_a_run_that_fails_tells_an_analyst_nothing_of_the_data_and_the_owner_why(own):
    server = own.serve()
    (own.folder / "reviews.parquet").write_bytes(b"PAR1 no file of Parquet's PAR1")
    answer = own.items()
    assert answer.status == 500 and "only the corpus's owner may see why" in answer.error
    assert str(own.folder) not in answer.error
    (own.folder / "reviews.parquet").unlink()  # to the owner an error of what they asked for
    gone = own.items()
    assert (gone.status, gone.error) == (answer.status, answer.error)
    assert server.end().count("items for alice") == 2

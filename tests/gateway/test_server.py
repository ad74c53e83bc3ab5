"""The gateway as analysts meet it: what they get, what it costs, what stands when things fail."""

from __future__ import annotations

import duckdb
import polars as pl
import pytest

from dphh.errors import UsageError
from dphh.gateway import server
from dphh.gateway.sandbox import Sandbox
from tests.gateway.conftest import SECRET, Client, Place, in_thread, needs_quack, until

pytestmark = needs_quack

ITEMS = "dphh_items('reviews', epsilon := 0.5, delta := 1e-7)"
BOMB = "'" + "a" * 900 + "'"
for _ in range(9):
    BOMB = f"(SELECT concat({', '.join(['s'] * 10)}) FROM (SELECT {BOMB} AS s))"


def test_analysts_get_releases_and_each_pays_from_their_own_share(place: Place) -> None:
    place.gateway()
    alice, bob = place.client("alice"), place.client("bob")
    found = alice.ask(f"SELECT item FROM {ITEMS} ORDER BY item")
    assert found == [("cat",), ("dog",), ("ran",), ("sat",), ("the",)]
    assert [share.runs for share in place.ledger.shares()] == [1, 0, 0]
    bob.ask(f"FROM {ITEMS}")
    assert [share.runs for share in place.ledger.shares()] == [1, 1, 0]
    assert place.ledger.status("reviews").runs == 2
    assert {row[0].split("/")[0] for row in bob.ask("FROM dphh_releases()")} == {"alice", "bob"}


def test_an_identical_request_is_one_run_whenever_and_wherever_it_is_asked(place: Place) -> None:
    place.gateway()
    first = place.client("alice").ask(f"FROM {ITEMS} ORDER BY ALL")
    both = place.client("alice").ask(f"SELECT count(*) FROM {ITEMS} a JOIN {ITEMS} b USING (score)")
    assert both == [(len(first),)]
    place.gateways.pop().close()
    place.gateway()
    again = place.client("alice").ask(f"FROM {ITEMS.replace('0.5', '5e-1')} ORDER BY ALL")
    assert again == first and len(place.ledger.runs()) == 1
    place.client("alice").ask(f"FROM {ITEMS[:-1]}, run_id := 'november')")
    assert [run.run_id for run in place.ledger.runs()][1:] == ["alice/november"]
    said = place.client("alice").refused(
        f"FROM {ITEMS[:-1]}, max_items := 7, run_id := 'november')"
    )
    assert "another request" in said and len(place.ledger.runs()) == 2


def test_a_share_refuses_and_so_does_the_corpus(place: Place) -> None:
    place.gateway()
    alice = place.client("alice")
    assert "alice's share of reviews" in alice.refused(f"FROM {ITEMS.replace('0.5', '2.0')}")
    assert place.ledger.runs() == []
    said = alice.refused("FROM dphh_items('letters', epsilon := 0.1, delta := 1e-8)")
    assert "found no corpus 'letters' of yours" in said
    assert said.replace("letters", "nothing") == alice.refused(
        "FROM dphh_items('nothing', epsilon := 0.1, delta := 1e-8)"
    )


def test_releases_of_other_corpora_are_not_there(place: Place) -> None:
    place.gateway()
    place.client("bob").ask("FROM dphh_items('letters', epsilon := 0.5, delta := 1e-7)")
    (run,) = place.ledger.runs()
    alice = place.client("alice")
    assert alice.ask("FROM dphh_releases()") == []
    assert "no such release" in alice.refused(f"FROM dphh_release('{run.run_id}')")
    assert len(place.client("bob").ask(f"FROM dphh_release('{run.run_id}')")) == 5


def test_counts_are_of_releases_that_an_analyst_may_see_and_of_lists(place: Place) -> None:
    place.gateway()
    alice = place.client("alice")
    place.client("bob").ask("FROM dphh_items('letters', epsilon := 0.5, delta := 1e-7)")
    (theirs,) = place.ledger.runs()
    alice.ask(f"FROM {ITEMS}")
    (own,) = (run.run_id for run in place.ledger.runs() if run.run_id != theirs.run_id)
    price = "epsilon := 0.5, delta := 1e-7"

    counted = alice.ask(
        f"SELECT item, low, high FROM dphh_counts('reviews', of := '{own}', {price})"
    )
    assert {item for item, _, _ in counted} == {"cat", "dog", "ran", "sat", "the"}
    (the,) = ((low, high) for item, low, high in counted if item == "the")
    assert the[0] <= 900 + 100 and the[1] >= 900 - 100

    asked = f"FROM dphh_counts('reviews', of := ['the cat', 'elm street'], {price})"
    assert [row[:2] for row in alice.ask(asked)] == [(2, "the cat"), (2, "elm street")]
    runs = len(place.ledger.runs())
    for of in (theirs.run_id, "nowhere", str(place.folder / "reviews.parquet")):
        for macro in ("dphh_counts", "dphh_plan_counts"):
            said = alice.refused(f"FROM {macro}('reviews', of := '{of}', {price})")
            assert "no such release" in said
    by = f"FROM dphh_counts('reviews', of := ['the'], \"by\" := 'who', groups := ['u0'], {price})"
    assert "declared no groups of 'who'" in alice.refused(by)
    assert len(place.ledger.runs()) == runs


def test_a_prior_is_a_release_that_an_analyst_may_see_and_no_file(place: Place) -> None:
    place.gateway()
    alice = place.client("alice")
    place.client("bob").ask("FROM dphh_items('letters', epsilon := 0.5, delta := 1e-7)")
    (theirs,) = place.ledger.runs()
    alice.ask(f"FROM {ITEMS}")
    (own,) = (run.run_id for run in place.ledger.runs() if run.run_id != theirs.run_id)
    price = "max_n := 1, epsilon := 0.5, delta := 1e-7"
    told = alice.ask(f"FROM dphh_plan_ngrams('reviews', prior := '{own}', {price})")
    assert "an earlier release" in " ".join(said for _, _, said, _ in told)
    public = f"prior_is_public := true, prior_text := 'what', {price}"
    for prior in (theirs.run_id, "nowhere", str(place.folder / "reviews.parquet")):
        for macro in ("dphh_ngrams", "dphh_plan_ngrams", "dphh_sql_ngrams"):
            said = alice.refused(f"FROM {macro}('reviews', prior := '{prior}', {public})")
            assert "no such release" in said
    said = alice.refused(f"FROM dphh_plan_ngrams('reviews', prior := ['/etc/passwd'], {public})")
    assert "give the run id of a release" in said


def test_another_name_for_the_same_files_is_not_told(place: Place) -> None:
    source = place.ledger.status("reviews").source
    place.ledger.add("layoffs-2026", source, 0.6, 1e-6)
    place.gateway()
    alice = place.client("alice")
    assert len(alice.ask(f"FROM {ITEMS}")) == 5
    (corpora,) = {row[1] for row in alice.ask("FROM dphh_releases()")}
    assert corpora == "reviews"
    said = alice.refused(f"FROM {ITEMS.replace('0.5', '0.9')}")
    assert "another corpus of the ledger has rows in the same files" in said
    assert "layoffs" not in said and "0.6" not in said
    assert len(place.ledger.runs()) == 1


def test_runs_that_take_the_number_of_users_for_known_are_the_owners(place: Place) -> None:
    place.gateway()
    alice = place.client("alice")
    price = "epsilon := 0.1, delta := 1e-8, max_length := 3"
    paper = f"dphh_trie('reviews', {price}, accounting := 'paper', users := 10000000)"
    local = (
        "dphh_ldp_trie('reviews', local_epsilon := 0.1, delta := 1e-8, users_per_level := 500, "
        "contributions := 1, max_length := 2, keep := 10, character_set := ['a', 'b'])"
    )
    for asked, said in ((paper, "accounting: 'paper'"), (local, "pad: without it")):
        assert said in alice.refused(f"FROM {asked}")
    assert place.ledger.runs() == []


def test_plans_and_the_ledgers_public_view_cost_nothing(served: Place) -> None:
    alice = served.client("alice")
    said = alice.ask(
        "SELECT value FROM dphh_plan_trie('reviews', epsilon := 1.0, delta := 1e-8, "
        "max_length := 4) WHERE section IN ('privacy', 'ledger')"
    )
    assert said[0] == ("(1, 1e-08)-differential privacy",)
    assert ("epsilon 1.5, delta 1e-05",) in said
    assert [row[:3] for row in alice.ask("FROM dphh_ledger()")] == [("reviews", 1.5, 1e-5)]
    assert str(served.folder) not in str(said)


@pytest.mark.parametrize(
    "path",
    ["reviews.parquet", "{0}/reviews.parquet", "{0}/*.parquet", "file://{0}/reviews.parquet", ""],
)
def test_a_path_is_no_corpus(served: Place, path: str) -> None:
    asked = path.format(served.folder)
    for columns in ("", "user_column := 'who', text_column := 'what', "):
        said = served.client("alice").refused(
            f"FROM dphh_items('{asked}', {columns}epsilon := 0.1, delta := 1e-8)"
        )
        assert "corpus" in said


def test_how_a_corpus_is_read_and_who_pays_is_not_for_analysts_to_say(served: Place) -> None:
    alice = served.client("alice")
    for option in (
        "lower := true", "item_column := 'what'", "account := 'letters'",
    ):  # fmt: skip
        said = alice.refused(f"FROM dphh_items('reviews', {option}, epsilon := 0.1, delta := 1e-8)")
        assert "owner has declared" in said


def test_tokens_open_and_close_the_door(place: Place) -> None:
    gateway = place.gateway()
    for token in ("wrong", place.tokens["alice"][:-1], "", "x" * 10_000):
        with pytest.raises(duckdb.Error):
            Client(gateway.uri, token)
    alice = place.client("alice")
    place.analysts.remove("alice")
    assert "token" in alice.refused("FROM dphh_ledger()")
    with pytest.raises(duckdb.Error):
        place.client("alice")
    assert place.client("bob").ask("SELECT 1") == [(1,)]
    assert place.analysts.path.stat().st_mode & 0o777 == 0o600
    assert place.tokens["bob"] not in place.analysts.path.read_text()


def test_a_long_run_blocks_nobody_and_stops_when_told(place: Place) -> None:
    request = place.long_request()
    gateway = place.gateway()
    running, found = in_thread(lambda: place.client("alice").ask(request))
    until(lambda: any(run.state == "running" for run in place.ledger.runs()))
    assert place.client("bob").ask("SELECT count(*) FROM dphh_ledger()") == [(2,)]
    assert place.client("alice").ask("SELECT count(*) FROM dphh_ledger()") == [(2,)]
    assert "limit of concurrent requests" in place.client("alice").refused(f"FROM {ITEMS}")
    assert running.is_alive()
    assert place.client("alice").ask("FROM dphh_stop()") == [(True,)]
    running.join(250)
    assert "stopped" in str(found[0]).lower()
    (run,) = place.ledger.runs()
    assert run.state in ("running", "failed")  # it had begun: its price stays spent
    assert place.ledger.shares("alice")[1].spent.epsilon > 0
    assert len(place.client("alice", gateway).ask(f"FROM {ITEMS}")) == 5


def test_analysts_ask_at_once(place: Place) -> None:
    place.gateway(jobs=4, jobs_each=2)
    asked = [
        (name, f"FROM dphh_items('reviews', epsilon := {epsilon}, delta := 1e-7)")
        for name in ("alice", "bob")
        for epsilon in (0.5, 0.6)
    ]
    threads = [
        in_thread(lambda name=name, query=query: place.client(name).ask(query))  # type: ignore[misc]
        for name, query in asked
    ]
    for thread, _ in threads:
        thread.join(250)
        assert not thread.is_alive()
    assert [len(found[0]) for _, found in threads] == [5] * 4
    assert [share.runs for share in place.ledger.shares()] == [2, 2, 0]


@pytest.mark.parametrize(
    "statement",
    [f"SELECT length({BOMB})", "SELECT list(n) FROM range(200000000) t(n)"],
    ids=["a long text", "a long list"],
)
def test_what_takes_too_much_memory_ends_alone(served: Place, statement: str) -> None:
    alice = served.client("alice")
    assert "emory" in alice.refused(statement)
    assert alice.ask("SELECT 1") == [(1,)]


def test_what_takes_too_long_is_ended() -> None:
    sandbox = Sandbox()
    with pytest.raises(UsageError, match="took over 1 seconds"):
        sandbox.ask(
            "SELECT count(*) FROM range(1000000000000)", lambda *_: pytest.fail(), seconds=1
        )
    sandbox.close()


def test_types_and_names_of_columns_come_through(served: Place) -> None:
    con = served.client("alice").con
    query = (
        "SELECT 1 AS a, sum(2) AS b, [''x'', NULL] AS c, {''k'': 1.50} AS d, "
        "DATE ''2026-01-02'' AS e,"
        ' NULL AS f, 3 AS "q""q", true AS g, 0.1::DOUBLE AS h'
    )
    relation = con.sql(f"FROM quack_query_by_name('srv', '{query}')")
    assert relation.columns == ["a", "b", "c", "d", "e", "f", 'q"q', "g", "h"]
    types = ["INTEGER", "HUGEINT", "VARCHAR[]", "STRUCT(k DECIMAL(3,2))", "DATE"]
    assert [str(each) for each in relation.types[:5]] == types
    many = served.client("alice").ask("SELECT * FROM range(300000) t(n)")
    assert len(many) == 300_000
    assert "cast it to another" in served.client("alice").refused("SELECT row(1, 2)")


def test_why_a_run_failed_is_for_the_owner(place: Place) -> None:
    place.gateway()
    schema = {"who": pl.String, "what": pl.String}
    frame = pl.DataFrame({"who": [None, "u"], "what": [SECRET, SECRET]}, schema=schema)
    frame.write_parquet(place.folder / "reviews.parquet")
    said = place.client("alice").refused(f"FROM {ITEMS}")
    assert "only the corpus's owner can see" in said
    assert "NULL" not in said and str(place.folder) not in said and SECRET not in said
    assert (
        place.ledger.shares("alice")[0].runs == 0
    )  # rows with a NULL user id are looked for before


def test_whose_token_goes_has_nothing_running_any_more(place: Place) -> None:
    gateway = place.gateway()
    alice, bob, asked = place.client("alice"), place.client("bob"), place.long_request()
    thread, found = in_thread(lambda: alice.ask(asked))
    until(lambda: any(run.state == "running" for run in place.ledger.runs()))
    place.analysts.remove("alice")
    thread.join(250)
    assert isinstance(found[0], duckdb.Error) and gateway._sandboxes == {}
    assert [run.state for run in place.ledger.runs()] != ["settled"]  # it did not come to its end
    assert "Not authorised" in alice.refused("SELECT 1")
    assert bob.ask("SELECT 1") == [(1,)]


def test_a_token_is_looked_at_before_each_macro(place: Place) -> None:
    gateway = place.gateway()
    alice = place.client("alice")
    asked = []
    answer = gateway._service.answer

    def removed_meanwhile(*what: object) -> object:
        asked.append(what)
        place.analysts.remove("alice")
        return answer(*what)  # type: ignore[arg-type]

    gateway._service.answer = removed_meanwhile  # type: ignore[method-assign,assignment]
    some = " UNION ALL ".join(f"SELECT {n} FROM dphh_ledger()" for n in range(5))
    said = alice.refused(some)  # by the next macro, or by whoever watches: which is first
    assert "Not authorised" in said or "was stopped" in said
    assert len(asked) == 1


def test_a_statement_calls_macros_so_often_and_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, asked = place.gateway(), []
    alice, answer = place.client("alice"), gateway._service.answer
    monkeypatch.setattr(gateway._service, "answer", lambda *of: asked.append(of) or answer(*of))
    for macro in ("dphh_release('r' || n)", "dphh_plan_items('reviews', epsilon := 1 / (n + 2))"):
        each = f"SELECT count(*) FROM range(1000000) t(n), LATERAL (FROM {macro})"
        assert "calls dphh over 64 times" in alice.refused(each)
    assert 64 <= len(asked) <= 2 * 64
    assert alice.ask("SELECT 1") == [(1,)]


def test_a_damaged_ledger_does_not_tell_where_it_lies(place: Place) -> None:
    place.gateway()
    alice = place.client("alice")
    with place.ledger.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (place.ledger.path.stat().st_size - 4096))
    for asked in ("FROM dphh_ledger()", "FROM dphh_releases()", f"FROM {ITEMS}"):
        said = alice.refused(asked)
        assert "for its owner to see" in said and str(place.folder) not in said, said


def test_with_the_guard_off_a_file_leaks(place: Place) -> None:
    """The control: what the guard and the locked sandbox stop is there to be stopped."""
    steal = f"SELECT what FROM read_parquet('{place.folder}/reviews.parquet') ORDER BY ALL LIMIT 1"
    place.gateway(guarded=False)
    assert place.client("alice").ask(steal) == [(SECRET,)]
    place.gateway()
    assert "Not authorised" in place.client("alice").refused(steal)


def test_rows_that_a_client_sends_are_not_taken(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quack appends without running a statement; the message never reaches it."""
    place.gateway()
    shown = "SELECT 'main' AS schema_name, 'CREATE TABLE kept (n INTEGER)' AS sql, 'table' AS kind"
    told = {asked: shown for asked in server._STARTUP_QUERIES if "duckdb_tables" in asked}
    monkeypatch.setattr(server, "_STARTUP_QUERIES", {**server._STARTUP_QUERIES, **told})
    alice = place.client("alice")
    with pytest.raises(duckdb.Error, match="only runs queries"):
        alice.con.execute("INSERT INTO srv.kept VALUES (7)")

"""Requests and what comes back: tables, parts of them, refusals in words, and nothing else."""

import asyncio
import io
import random
import re
from urllib.parse import quote

import polars as pl
import pytest

from dphh import Ledger
from dphh.asking.macros import macros
from dphh.errors import CorpusError, LedgerError, UsageError
from dphh.gateway.ledger_view import answer_to_error
from dphh.gateway.server import Gateway
from dphh.registry import VERBS
from tests.gateway.conftest import SECRET
from tests.ledger.asked import ask

WORDS = {"the", "cat", "sat", "dog", "ran"}


def test_a_verb_answers_with_its_release(place):
    rows = place.items().json
    assert {row["item"] for row in rows} == WORDS
    assert rows[0].keys() == {
        "level",
        "item",
        "tokens",
        "score",
        "users",
        "low",
        "high",
        "estimate",
    }
    (run_id,) = {row["run_id"] for row in place.ask("releases").json if row["epsilon"] == 0.5}
    assert place.ask(f"releases/{run_id}").json == rows
    as_table = place.items(headers={"Accept": "*/*"}).body
    assert pl.read_parquet(io.BytesIO(as_table)).to_dicts() == rows
    manifest, parquet = place.ledger.release(run_id)
    assert pl.read_parquet(io.BytesIO(parquet))["item"].to_list() == [row["item"] for row in rows]
    assert manifest["privacy"]["epsilon"] == 0.5


def test_a_plan_the_ledger_and_the_corpora_are_free(place):
    before = len(place.ledger.runs())
    plan = place.ask("plan/ngrams", corpus="reviews", max_n=3, epsilon=1, delta=1e-8).json
    facts = {(row["section"], row["fact"]): row["value"] for row in plan}
    assert facts["privacy", "promise"] == "(1, 1e-08)-differential privacy"
    assert facts["ledger", "this run"].startswith("takes ")
    refused = place.ask("plan/items", corpus="reviews", epsilon=3.9, delta=1e-8).json
    assert any(row["fact"] == "would refuse" for row in refused)
    (ledger,) = place.ask("ledger").json
    assert (ledger["corpus"], ledger["cap_epsilon"]) == ("reviews", 3.5)
    (corpus,) = place.ask("corpora").json
    assert corpus == {"corpus": "reviews", "user_columns": "who", "content_column": "what",
                      "groups": None}  # fmt: skip
    assert len(place.ledger.runs()) == before


def test_every_macro_has_an_address_and_help_names_it(place):
    helped = {row["call"].split("(")[0] for row in place.ask("help").json}
    assert helped == {f"FROM dphh_{name}" for name, each in macros().items() if not each.for_owner}
    for verb in VERBS:
        options = [row["option"] for row in place.ask(f"options/{verb}").json]
        assert options == [*VERBS[verb].options]
    assert place.ask("healthz").status == 404
    assert place.raw("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").endswith(b"ok")


def test_the_page_has_the_init_file_and_nothing_private(place):
    for host in ("gateway.example:9494", "<script>", "a\u00e9b"):
        page = place.raw(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").decode()
        assert "CREATE OR REPLACE MACRO dphh_ngrams" in page and "YOUR-TOKEN" in page
        assert "<script>" not in page and "reviews" not in page.partition("FROM dphh_help")[0]
        assert ("http://gateway.example:9494/v1/" in page) is host.startswith("gateway")


ASKED = "corpus=reviews&epsilon=1&delta=1e-8"
REPORTS = (
    "corpus=reviews&local_epsilon=4&delta=1e-6&users_per_level=2000&contributions=1&max_length=2"
    "&keep=9&character_set=ab"
)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("itmes", 404, "did you mean 'items'"),
        ("releases/none", 400, "no release 'none' of yours"),
        ("ledger?corpus=reviews", 400, "corpus: dphh_ledger has no such option"),
        ("items", 400, "corpus: is missing"),
        ("why?run_id=none&phrase=cat", 400, "no release 'none' of yours"),
        (
            f"items?{ASKED}&where_rows=true&run_id=x",
            400,
            "run_id, where_rows: how a corpus is read",
        ),
        ("verify?folder=/etc", 404, "there is no /v1/verify"),
        ("add_corpus?corpus=x&source=/etc/passwd", 404, "there is no /v1/add_corpus"),
        ("items?corpus=reviews&epsilon=much&delta=1", 400, "epsilon: found 'much'"),
        ("items?corpus=reviews&epsilon=9&delta=1e-8", 403, "nothing was spent"),
        (f"items?{ASKED}&by=who", 400, "by: the corpus's owner has declared no groups"),
        (f"items?{ASKED}&by=[[]]", 400, "by: the corpus's owner has declared no groups"),
        (f"counts?{ASKED}&of=/etc/passwd", 400, "of: "),
        (f"ldp_trie?{REPORTS}", 400, "only the corpus's"),
    ],
)
def test_what_is_wrong_is_said_in_words(place, path, status, said):
    before = place.states()
    answer = place.ask(path)
    assert answer.status == status and said.lower() in answer.error.lower()
    as_table = place.ask(path, headers={"Accept": "*/*"})
    assert as_table.status == 200
    assert pl.read_parquet(io.BytesIO(as_table.body)).to_dicts() == [{"refused": answer.error}]
    name, mark, query = path.partition("?")
    as_lines = place.ask(f"{name}.jsonl{mark}{query}")
    assert (as_lines.status, as_lines.json) == (200, {"refused": answer.error})
    assert place.states() == before


def test_an_option_is_given_once_and_the_method_is_get(place):
    twice = place.ask("items?corpus=reviews&epsilon=0.1&epsilon=3&delta=1e-8")
    assert twice.status == 400 and twice.error == "epsilon: found 2 times; give it once"
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "QUERY"):
        assert place.ask("ledger", verb=method).status == 405
    assert "no body" in place.ask("ledger", headers={"Content-Length": "0001"}).error


def test_a_token_is_needed_and_says_who_asks(place):
    token = place.tokens["alice"]
    for wrong in (
        *("", "Bearer", f"Basic {token}", f"Bearer {token[:-1]}", f"Bearer {token} x"),
        *("Bearer \u00e9", f"Bearer {token}, Bearer {token}", "Bearer '; DROP TABLE x"),
    ):
        for path in ("ledger", "items", "nothing", "releases/x"):
            answer = place.ask(path, headers={"Authorization": wrong})
            assert answer.status == 401 and answer.error.startswith("Not authorised")
    assert place.ask("ledger", headers={"Authorization": f"bearer {token}"}).status == 200
    assert [row["corpus"] for row in place.ask("ledger", "bob").json] == ["reviews", "letters"]


@pytest.mark.parametrize("kind", [UsageError, CorpusError, LedgerError])
def test_an_error_of_a_run_is_told_to_the_owner_alone(kind):
    problem = kind("/srv/reviews.parquet has no table")
    to_alice = answer_to_error(problem, of_run=True)
    assert (to_alice.status, to_alice.log) == (500, str(problem))
    assert "srv" not in to_alice.refused


def test_a_token_that_is_withdrawn_meanwhile_gets_no_answer(tmp_path):
    class Withdrawn(Ledger):
        looks = 0

        def analyst_with(self, token):
            self.looks += 1
            return "alice" if self.looks == 1 else None

    sent, where = [], {"type": "http", "method": "GET", "path": "/v1/ledger", "query_string": b""}
    head = [(b"authorization", b"Bearer x"), (b"accept", b"application/json")]

    async def nothing():
        await asyncio.sleep(60)

    async def keep(message):
        sent.append(message)

    app = Gateway(Withdrawn(tmp_path / "ledger.sqlite"), {}).app()
    asyncio.run(app({**where, "headers": head}, nothing, keep))
    assert sent[0]["status"] == 401


def test_what_others_spent_is_told_to_no_analyst(own):
    own.serve()
    half = {"corpus": "reviews", "epsilon": 2.5, "delta": 1e-8}

    def told(path, **asked):
        return own.ask(path, **asked).json

    before = told("ledger"), told("plan/items", **half)
    # What bob asks leaves the account less than alice's share.
    ask(Ledger(own.ledger.path, "bob"), "of bob", own.corpus, 1.9, account="reviews")
    assert (told("ledger"), told("plan/items", **half)) == before
    refused = [own.items(epsilon=epsilon) for epsilon in (2.5, 1.5)]
    assert {answer.status for answer in refused} == {403}
    (words,) = {answer.error for answer in refused}
    assert not re.search(r"\d", words)


def test_a_look_at_an_answer_runs_nothing_and_tells_no_size(own):
    own.serve()
    looked = own.items(verb="HEAD", headers={"Accept": "*/*"})
    assert (looked.status, looked.body, "content-length" in looked.headers) == (200, b"", False)
    assert own.states() == []
    whole = own.items(headers={"Accept": "*/*", "Range": "bytes=0-3"})
    assert (whole.status, whole.body[:4], whole.body[-4:]) == (200, b"PAR1", b"PAR1")


def test_nothing_says_whether_there_is_a_corpus_without_a_share(place):
    # What another's request was answered is no answer either.
    assert place.ask("items", "bob", corpus="letters", epsilon=0.1, delta=1e-8).status == 200
    for path in ("items", "plan/items"):
        told = []
        for corpus in ("letters", "nothing"):
            answer = place.ask(path, corpus=corpus, epsilon=0.1, delta=1e-8)
            told.append((answer.status, answer.error.replace(corpus, "X"), answer.headers.keys()))
        assert told[0] == told[1]
    assert SECRET not in str(told)


def test_releases_are_of_those_who_asked_for_them(place):
    place.items("bob", 0.25)
    asked = place.ask("releases", "bob").json
    (run_id,) = [row["run_id"] for row in asked if row["corpus"] == "reviews"]
    assert run_id not in str(place.ask("releases").json)
    hidden, none = place.ask(f"releases/{run_id}"), place.ask("releases/x")
    assert hidden.error == none.error.replace("'x'", repr(run_id))
    of = {"corpus": "reviews", "epsilon": 0.1, "delta": 1e-8, "of": run_id}
    assert place.ask("counts", **of).status == 400
    assert place.ask("counts", "bob", **of).status == 200


ASK = {"corpus": "reviews", "epsilon": 0.01, "delta": 1e-8}
HOSTILE = [
    "/etc/passwd", "../ledger.sqlite", "reviews.parquet", "http://127.0.0.1:1/x", "*", "%",
    "'; DROP TABLE runs; --", "$(id)", "{{7*7}}", "\x00", "\x1b[2J", "\u202egpj", "-1", "1e999",
    "nan", "1_000", "\u0661", "9" * 400, "[", "[[]]", "[" * 3000, "[null]", '["hunter2"]', "true",
    "None", "who", "__class__", "letters", "bob",
]  # fmt: skip


def test_hostile_values_tell_nothing_and_run_nothing(place):
    """In every option of every verb, and in the place of names."""
    chance, before = random.Random(3), place.states()
    told = []
    for verb, macro in VERBS.items():
        for option in ("corpus", *macro.options):
            for value in chance.sample(HOSTILE, 3):
                told.append(place.ask(f"plan/{verb}", **ASK | {option: value}))
                assert told[-1].status in (200, 400, 414), (verb, option, value)
    for value in HOSTILE:
        told.append(place.ask(chance.choice(["releases/", "plan/", ""]) + quote(value, safe="/")))
        assert told[-1].status in (400, 404, 414), value
    found = b"\n".join(answer.body for answer in told).decode(errors="replace")
    private = [SECRET, "Traceback", "root:", 'File "', str(place.ledger.path)]
    assert not [each for each in private if each in found]
    assert place.states() == before


def test_another_analysts_share_is_never_spent(place):
    before = place.spent(), place.spent("bob")
    hidden, listed = str(place.folder / "letters.parquet"), place.folder / "listed.txt"
    listed.write_text("hello\n")
    for there in (hidden, str(listed)):  # a place is a word like any other
        asked = [place.ask("counts", **ASK, of=each).error for each in (there, there + "x")]
        assert asked[0] == asked[1].replace(there + "x", there)
    for corpus in ("letters", "REVIEWS", "reviews ", "", hidden):
        assert place.items(corpus=corpus).status == 400
    for extra in ("analyst", "account", "run_id", "again", "engine", "randomness", "out"):
        assert re.match(f"{extra}: (dphh_items has no|how a)", place.items(**{extra: "bob"}).error)
    assert (place.spent(), place.spent("bob")) == before

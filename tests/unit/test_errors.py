"""No message holds a value from the data: not the error, nor what a traceback would show of it."""

import io
import traceback
import warnings
from contextlib import redirect_stderr
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import dphh
from dphh import Corpus, DphhError, EngineError, UsageError, items
from dphh.engines.polars.host import hide_polars_errors as of_polars
from dphh.errors import hiding_private_details
from dphh.reader.failures import replace_duckdb_errors
from tests.engines.test_content import not_utf8

pytestmark = pytest.mark.on_spark

SECRET = "SENTINEL123"


def relation(query):
    con = duckdb.connect()
    con.execute(f"CREATE TABLE secrets AS SELECT '{SECRET}' || i AS what FROM range(9) r(i)")
    return con.sql(query)


def fine(**columns):
    return pl.DataFrame({"who": [1, 2], "what": [SECRET, f"{SECRET} more"]}).with_columns(**columns)


IN_MEMORY = {
    "cast in a lazy frame": lambda: fine().lazy().with_columns(who=pl.col("what").cast(pl.Int64)),
    "cast in a relation": lambda: relation("SELECT CAST(what AS INT) AS who, what FROM secrets"),
    "error() in a relation": lambda: relation("SELECT error(what) AS what, 1 AS who FROM secrets"),
    "not UTF-8": lambda: pa.table({"who": [1], "what": not_utf8(SECRET)}),
    "NULL user": lambda: fine(who=pl.lit(None)),
    "too long": lambda: fine(what=pl.lit(SECRET * 100)),
}


def parquet_damaged(path):
    fine().write_parquet(path, compression="uncompressed", statistics=False)
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    path.write_bytes(data)


def failure(corpus, engine):
    """All that anybody sees of a run that fails, and all that an error tracker takes along."""
    seen = io.StringIO()

    def say(text):
        seen.write(f"{text}\n")

    with redirect_stderr(seen), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(DphhError) as caught:
            items(corpus, epsilon=1, delta=1e-7).run(progress=say, engine=engine)
    error = caught.value
    shown = "".join(line for line in traceback.format_exception(error))
    messages = (str(w.message) for w in warned)
    return "\n".join([*tracked(error), shown, seen.getvalue(), *messages])


def tracked(error):
    """What trackers store: every error behind this one, hidden or not, and variables of frames."""
    told, left, known = [], [error], set()
    while left:
        link = left.pop()
        if link is None or id(link) in known:
            continue
        known.add(id(link))
        told += [str(link), repr(link), repr(link.args), *map(str, getattr(link, "__notes__", []))]
        told += [repr(value) for value in vars(link).values()]
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if "/tests/" not in frame.f_code.co_filename:
                told += [repr(value) for value in frame.f_locals.values()]
        left += [link.__cause__, link.__context__]
    return told


def test_an_error_comes_without_those_behind_it_and_without_its_frames(monkeypatch):
    @hiding_private_details
    def reads():
        rows = [SECRET]
        try:
            raise ValueError(rows[0])
        except ValueError:
            raise UsageError("said") from None

    def failed():
        try:
            raise KeyError("of whoever called")
        except KeyError:
            with pytest.raises(UsageError, match="said") as caught:
                reads()
            return caught.value

    problem = failed()
    assert problem.__cause__ is None
    assert isinstance(problem.__context__, KeyError)  # their own, which they have anyway
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(problem.__traceback__)] == [
        "failed", "without_private_details",
    ]  # fmt: skip
    assert SECRET not in "\n".join(tracked(problem))
    monkeypatch.setenv("DPHH_SHOW_ENGINE_ERRORS", "1")
    assert isinstance(failed().__context__, ValueError)


@pytest.mark.parametrize(
    "edge, problem",
    [(replace_duckdb_errors, duckdb.ConversionException), (of_polars, pl.exceptions.ComputeError)],
)
def test_an_engines_own_message_stops_at_its_edge(edge, problem):
    with pytest.raises(EngineError, match="withheld") as caught, edge("held"):
        raise problem(f"could not convert {SECRET}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("make", IN_MEMORY.values(), ids=IN_MEMORY.keys())
def test_what_fails_in_memory_quotes_nothing(engine, make):
    corpus = Corpus(make(), user="who", text="what", too_long="error")
    assert SECRET not in failure(corpus, engine)


@pytest.mark.parametrize("write", [parquet_damaged, fine().write_csv])
def test_what_fails_on_disk_quotes_nothing(engine, tmp_path, write):
    path = tmp_path / "corpus.parquet"
    write(path)
    assert SECRET not in failure(Corpus(path, user="who", text="what"), engine)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Corpus("a.csv", user="who", txt="what"),  # type: ignore[call-arg]
        lambda: Corpus("a.csv", user="who", text="what", split="tokens"),
        lambda: items(epsilon=-1, delta=1e-7),
        lambda: fine().dphh.items(user="who", text="what", epsilon=-1, delta=1e-7),
    ],
)
def test_a_wrong_option_is_told_at_the_callers_line(call):
    """In a notebook each frame takes ten lines, and the message comes last."""
    with pytest.raises(UsageError) as caught:
        call()
    package = Path(dphh.__file__).parent  # a clone may be in a folder of any name
    of_dphh = [each for each in caught.traceback if package in Path(each.path).parents]
    assert len(of_dphh) == 1

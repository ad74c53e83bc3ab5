"""What `import dphh` offers, on frames too; what it imports, and what commands lack."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import dphh
from dphh.registry import VERBS


def test_public_names_are_complete_and_no_modules_names():
    assert dir(dphh) == sorted(dphh.__all__)
    assert all(hasattr(dphh, name) for name in dphh.__all__)
    modules = {path.stem for path in Path(dphh.__file__).parent.iterdir()}
    assert not {*dphh.__all__} & modules, "a module of that name would take the public name's place"


FRAME = pl.DataFrame({"who": range(300), "what": ["a b", "a b c", "b"] * 100})
SLOW = {
    *("cryptography", "duckdb", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "pyspark"),
    *("rich", "scipy"),
}
#: What the ledger and the registry of verbs are made of.
LEDGER = {"duckdb", "numpy", "pyarrow"}
A_SEARCH = (
    "from dphh.cli import cli; cli(['ngrams', 'a.parquet', '--user', 'who', '--text', 'what', "
    "'--max-n', '3', '--epsilon', '1', '--delta', '1e-6', {!r}], standalone_mode=False)"
)


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("import dphh", set()),
        ("import dphh; dphh.Corpus('a.parquet', user='u', text='t')", set()),
        ("import dphh; dphh.items", LEDGER),
        ("import dphh; dphh.items(epsilon=1, delta=1e-7)", LEDGER),
        ("import dphh; dphh.trie(epsilon=1, delta=1e-7, max_length=5)", {*LEDGER, "scipy"}),
        ("from dphh.cli import cli; cli(['--version'], standalone_mode=False)", set()),
        ("from dphh.cli import cli; cli([], standalone_mode=False)", set()),
        ("from dphh.cli import cli; cli(['--help'], standalone_mode=False)", set()),
        ("import dphh; repr(dphh.ngrams(max_n=3, epsilon=1, delta=1e-7))", LEDGER),
        (A_SEARCH.format("--plan"), LEDGER),
        (A_SEARCH.format("--json"), {*LEDGER, "pandas", "polars", "scipy"}),
        (
            "from dphh import Corpus, Ledger;"
            "Ledger().add('a', Corpus('/a', user='u', text='t'), 1.0, 0.0);"
            "from dphh.cli import cli; cli(['ledger', 'show'], standalone_mode=False)",
            LEDGER,
        ),
    ],
)
def test_nothing_slow_is_imported_before_it_is_needed(command, needed, tmp_path):
    say = "import sys; print(*sys.modules)"
    run = [sys.executable, "-c", f"import dphh; {command}; {say}"]
    FRAME.write_parquet(tmp_path / "a.parquet")
    kept = {"env": os.environ | {"XDG_DATA_HOME": str(tmp_path)}, "cwd": tmp_path}
    out = subprocess.run(run, capture_output=True, text=True, check=True, timeout=250, **kept)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    assert "dphh" in loaded
    assert loaded & SLOW <= needed


@pytest.mark.parametrize("frame", [FRAME, FRAME.lazy()])
def test_a_namespaces_verb_is_the_typed_function(frame):
    cost = {"epsilon": 4.0, "delta": 1e-3, "max_n": 2, "shares": (2, 3), "method": "dpne"}
    plan = frame.dphh.ngrams(user="who", text="what", lower=True, account=None, **cost)
    typed = dphh.ngrams(dphh.Corpus(frame, user="who", text="what", lower=True), **cost)
    assert plan.dumps() == typed.dumps()
    assert {row["item"] for row in plan.run()} >= {"a", "b", "a b"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_namespaces_verb_takes_the_options_of_the_function_and_of_a_corpus(verb):
    of_corpus = dict(inspect.signature(dphh.Corpus).parameters)
    # `unit` is the verb's; a connection goes with the name of a table.
    for other in ("source", "connection", "unit"):
        del of_corpus[other]
    taken = inspect.signature(getattr(FRAME.dphh, verb)).parameters
    options = {**of_corpus, **VERBS[verb].options}
    assert {name: each.default for name, each in taken.items()} == {
        name: each.default for name, each in options.items()
    }


def test_a_command_without_its_packages_ends_in_one_line(tmp_path):
    blocked = (
        f"import sys; sys.modules['uvicorn'] = None; "
        f"sys.argv = ['dphh', 'serve', '--ledger', r'{tmp_path / 'ledger'}']; "
        "from dphh.__main__ import command; command()"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "pip install 'dphh[serve]'" in done.stderr and "Traceback" not in done.stderr


MESSAGES = pl.DataFrame(
    {"who": [1, 2, 3], "what": ["A b", "c", "d"], "lang": ["en", "en", "de"], "stars": [1, 5, 5]}
).with_columns(kind=pl.col("lang").cast(pl.Categorical), parts=pl.col("what").str.split(" "))
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def test_a_frames_verb_takes_expressions_where_polars_people_write_them():
    what, lang = pl.col("what"), pl.col("lang")
    plan = dphh.frame(MESSAGES.lazy()).ngrams(
        user=pl.col("who"), text=what.str.to_lowercase(), where=lang == "en",
        by=lang.str.to_uppercase().alias("LANG"), groups=["EN"], max_n=2, **BUDGET,
    )  # fmt: skip
    name = "col('what').str.to_lowercase()"
    assert plan.corpus.user == ("who",) and plan.corpus.content.column == name
    read = plan.corpus.source.collect()
    assert read[name].to_list() == ["a b", "c"] and read["LANG"].to_list() == ["EN", "EN"]
    assert dict(plan.price.parameters)["by"] == "LANG"
    mark = pl.col("stars").cast(pl.String).alias("mark")
    several = MESSAGES.dphh.corpus(user=[pl.col("who"), mark], text="what")
    assert several.user == ("who", "mark")
    assert dir(MESSAGES.dphh) == sorted([*VERBS, "corpus"])
    with pytest.raises(dphh.UsageError, match="frame: found a str; give a Polars frame"):
        dphh.frame("messages.parquet")


def test_an_expression_that_chooses_rows_is_part_of_what_is_recorded():
    many = pl.DataFrame({"who": range(900), "what": ["a", "b", "c"] * 300, "n": [1, 2, 3] * 300})
    of_two = many.lazy().dphh.items(user="who", text="what", where=pl.col("n") < 3, **BUDGET)
    release = of_two.run()
    assert {*release.table["item"].to_pylist()} == {"a", "b"}
    assert "of rows where \"[(col('n')) < (dyn int: 3)]\"" in " ".join(repr(release).split())
    notes = []
    of_one = many.dphh.corpus(user="who", text="what", where=pl.col("n") < 2)
    dphh.items(of_one, **BUDGET).run(progress=notes.append)
    assert not any("the same request" in note for note in notes)
    assert not many.lazy().dphh.items(
        user="who", text="what", where=pl.col("n") < 3, **BUDGET
    ).run().spent  # fmt: skip


WHAT, STARS = pl.col("what"), pl.col("stars")


@pytest.mark.parametrize(
    "options",
    [
        {"text": WHAT.first()},
        {"text": WHAT.shift(1)},
        {"text": WHAT.str.to_lowercase().sort_by("stars")},
        {"text": pl.concat_str([WHAT, WHAT.mode().first()])},
        {"text": pl.when(STARS.rank() > 1).then(WHAT)},
        {"text": WHAT.map_batches(lambda all_rows: all_rows.reverse())},
        {"text": WHAT.last().over("lang")},
        {"user": pl.col("who").rank("dense")},
        {"user": ["lang", pl.row_index()]},
        {"by": STARS.rank().cast(pl.String), "groups": ["x"]},
        {"where": pl.len().over("what") > 10},
        {"where": STARS.mean() < STARS},
        {"where": WHAT.is_first_distinct()},
        {"where": pl.lit(pl.Series([True, False, True]))},
        {"text": pl.coalesce(WHAT.str.extract("(z)"), WHAT.filter(STARS == 1))},
        {"text": pl.concat_str(WHAT, WHAT.filter(STARS == 1))},
        {"where": WHAT.filter(STARS == 1) == "A b"},
        {"text": pl.concat_str(WHAT, WHAT.drop_nulls())},
        {"text": WHAT.replace_strict(pl.col("lang"), WHAT, default=None)},
        {"text": pl.lit("en").replace(pl.col("lang"), WHAT)},
        {"where": pl.lit("A b").is_in(WHAT)},
        {"where": pl.col("stars").set_sorted() == 5},
        {"text": WHAT.cast(pl.Categorical).to_physical().cast(pl.String)},
        {"text": pl.col("kind").cast(pl.UInt32).cast(pl.String)},
        {"text": pl.col("parts").list.sample(1).list.first()},
        {"text": pl.col("parts").explode()},
        {"text": pl.coalesce(pl.col("parts").list.explode(), "what")},
    ],
    ids=lambda options: str(next(iter(options.values())))[:40],
)
def test_an_expression_over_other_rows_is_refused(options):
    with pytest.raises(dphh.UsageError, match="cannot see to be made from each row alone"):
        MESSAGES.lazy().dphh.items(**{"user": "who", "text": "what", **BUDGET, **options})


@pytest.mark.parametrize(
    "text",
    [
        WHAT.str.strip_chars().str.replace_all("a", "b").str.slice(0, 9),
        pl.concat_str(WHAT, "lang", separator=" "),
        pl.when(STARS > 1).then(WHAT).otherwise(pl.lit("none")),
        pl.coalesce(WHAT.str.extract("(x)"), pl.col("lang")),
        WHAT.replace({"c": "C"}).fill_null(pl.col("lang")),
        pl.col("parts").list.join(" "),
        STARS.clip(1, pl.col("who")).round(1).cast(pl.String),
        pl.when(pl.col("lang").is_in(["en", "de"]) & STARS.is_between(1, "who")).then(WHAT),
        pl.struct("what", "lang").struct.field("what").alias("said"),
    ],
    ids=lambda text: str(text)[:40],
)
def test_an_expression_of_one_row_is_read_as_polars_reads_it(text):
    read = MESSAGES.dphh.corpus(user="who", text=text)
    expected = MESSAGES.select(text.alias("x"))["x"].to_list()
    assert read.source.collect()[read.content.column].to_list() == expected


@pytest.mark.parametrize(
    "options",
    [
        {"by": pl.col("lang").alias("who"), "groups": ["en"]},
        {"where": (STARS > 1).alias("what")},
        {"user": WHAT.str.slice(0, 1).alias("k"), "by": WHAT.str.slice(1).alias("k")},
    ],
    ids=["by", "where", "twice"],
)
def test_an_expression_takes_the_place_of_no_other_column(options):
    with pytest.raises(dphh.UsageError, match=r"another column is .* give the expression an alias"):
        MESSAGES.dphh.items(**{"user": "who", "text": "what", **BUDGET, **options})


@pytest.mark.parametrize("frame", [MESSAGES, MESSAGES.lazy()], ids=["eager", "lazy"])
def test_a_failing_expression_shows_no_value_and_fails_before_a_run_pays(frame):
    plan = frame.dphh.items(user="who", item=WHAT.cast(pl.Int64), **BUDGET)
    with pytest.raises(dphh.CorpusError) as refused:
        plan.run()
    assert "A b" not in str(refused.value) and "Nothing was spent" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"text": pl.col("wht").str.to_lowercase()}, 'unable to find column "wht"'),
        ({"where": STARS}, "filter predicate must be of type `Boolean`"),
        ({"text": pl.col("what", "lang")}, "which is several columns; give one"),
        ({"text": MESSAGES["what"]}, "text or item: found a Series; give the name of one column"),
        ({"user": MESSAGES["who"]}, "user: found a Series; name the column of user ids"),
        ({"where": MESSAGES["stars"] > 1}, "where: found a Series; give a condition in SQL"),
        ({"by": MESSAGES["lang"], "groups": ["en"]}, "by: found a list; name the column whose"),
    ],
)
def test_a_frames_verb_says_what_is_wrong_with_its_columns_and_shows_no_row(options, said):
    with pytest.raises(dphh.DphhError, match=said) as refused:
        MESSAGES.lazy().dphh.items(**{"user": "who", "text": "what", **BUDGET, **options})
    assert "A b" not in str(refused.value)
    with pytest.raises(dphh.UsageError, match="found a Series; give the frame"):
        dphh.Corpus(MESSAGES["what"], user="who", text="what")

"""Rows are one user's each: what is not known to take rows one by one is refused, or answered for.

A query that takes rows one by one gives of two tables together what it gives of each. That is what
the promise needs, and it is the oracle here: it runs the query, and knows no plan and no SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import dphh
from dphh import Corpus, Ledger, UsageError, check, compare, items
from dphh.lineage.duckdb_views import origin_of_relation
from dphh.lineage.polars_plans import Walk, origin_of_lazy
from dphh.plan import plan_from_json
from dphh.report.promise import in_words

READ = {"user": "who", "text": "what"}
SCHEMA = {
    "who": pl.Int64,
    "what": pl.String,
    "tags": pl.List(pl.String),
    "more": pl.Struct({"n": pl.Int64, "day": pl.String}),
}
OTHERS = [
    (1, "a b", ["x", "y"], {"n": 1, "day": "2020-01-02"}),
    (1, "a b", [], {"n": 2, "day": "2021-03-04"}),
    (2, "A b", ["x"], {"n": 3, "day": "2020-01-02"}),
    (2, None, None, {"n": None, "day": "1999-12-31"}),
    (3, "c", ["y", "y"], {"n": 1, "day": "2020-01-02"}),
    (4, "a b", ["z"], {"n": 7, "day": "2020-02-29"}),
]
ONE_USERS = [
    (9, "a b", ["x", "z"], {"n": 4, "day": "2020-01-02"}),
    (9, "c", ["y"], {"n": None, "day": "2000-01-01"}),
    (9, None, None, {"n": 1, "day": "2020-01-02"}),
]


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    """The others, one user, and all together: the user's rows among the others'."""
    mixed = [ONE_USERS[2], *OTHERS[:3], ONE_USERS[1], ONE_USERS[0], *OTHERS[3:]]
    paths = []
    for name, rows in (("others", OTHERS), ("one", ONE_USERS), ("all", mixed)):
        paths.append(tmp_path / f"{name}.parquet")
        pl.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(paths[-1])
    return paths


def bag(rows: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(map(repr, rows))


def adds_up(rows_of: Callable[[Path], list[tuple[Any, ...]]], tables: list[Path]) -> bool:
    others, one, everything = (bag(rows_of(path)) for path in tables)
    return others + one == everything


C = pl.col
Lazy = Callable[[pl.LazyFrame], pl.LazyFrame]

BY_ROW: list[Lazy] = [
    lambda t: t,
    lambda t: t.select("who", "what"),
    lambda t: t.filter(C("what").str.contains("a") & C("who").is_between(1, 9)),
    lambda t: t.filter(C("what").is_in(["a b", "c"]) | C("what").is_null()),
    lambda t: t.filter(C("who").is_in(pl.Series([1, 9]))),
    lambda t: t.filter(pl.lit("x").is_in(C("tags"))),
    lambda t: t.with_columns(C("what").str.to_lowercase().str.strip_chars().fill_null("")),
    lambda t: t.with_columns(pl.when(C("who") > 2).then(C("what")).otherwise(pl.lit("few"))),
    lambda t: t.with_columns(C("who").cast(pl.String), what=pl.concat_str("what", "who")),
    lambda t: t.with_columns(C("what").str.split(" ")).explode("what"),
    lambda t: t.explode("tags").select("who", what="tags"),
    lambda t: t.unnest("more").with_columns(C("day").str.to_date("%Y-%m-%d").dt.month_start()),
    lambda t: t.with_columns(C("more").struct.field("n").clip(1, 3).abs() + 1),
    lambda t: t.with_columns(C("tags").list.join(","), n=C("tags").list.len()),
    lambda t: t.with_columns(C("what").replace({"c": "d"}), w=pl.coalesce("what", pl.lit("x"))),
    lambda t: t.drop_nulls("what").rename({"what": "w"}).sort("w", "who"),
    lambda t: t.unpivot(index="who", on=["what"]),
    lambda t: pl.concat([t, t.filter(C("who") > 1)]),
    lambda t: pl.concat([t.select("who"), t.select("what")], how="diagonal"),
    lambda t: t.cache().remove(C("who") == 2),
    lambda t: pl.SQLContext(t=t).execute("SELECT who, upper(what) AS what FROM t WHERE who > 1"),
    lambda t: t.with_columns(n=pl.sum_horizontal("who", pl.lit(1)), h=C("what").hash(seed=1)),
]

MIXING: dict[str, Lazy] = {
    "Distinct": lambda t: t.unique("what"),
    "GroupBy": lambda t: t.group_by("what").agg(C("who").first()),
    "Join": lambda t: t.join(t.filter(C("who") == 9), on="what", how="semi"),
    "HConcat": lambda t: pl.concat([t, t.sort("what").select(w="what")], how="horizontal"),
    "MergeSorted": lambda t: t.merge_sorted(t, "who"),
    "Slice": lambda t: t.sort("who").head(3),
    "Window": lambda t: t.filter(pl.len().over("what") > 1),
    "Agg, sum": lambda t: t.with_columns(C("who").sum()),
    "Agg, implode": lambda t: t.filter(C("who").is_in(C("more").struct.field("n"))),
    "Len": lambda t: t.with_columns(n=pl.len()),
    "rank": lambda t: t.with_columns(C("who").rank()),
    "shift": lambda t: t.with_columns(C("what").shift()),
    "cum_sum": lambda t: t.with_columns(C("who").cum_sum()),
    "unique": lambda t: t.select(C("what").unique()),
    "Sort": lambda t: t.with_columns(C("what").sort()),
    "SortBy": lambda t: t.with_columns(C("what").sort_by("who")),
    "Explode": lambda t: t.select(C("tags").explode()),
    "Filter": lambda t: t.select(C("what").filter(C("who") > 1)),
    "row_index": lambda t: t.with_row_index(),
    "reverse": lambda t: t.with_columns(C("what").reverse()),
    "gather_every": lambda t: t.gather_every(2),
    "fill_null_with_strategy": lambda t: t.fill_null(strategy="forward"),
    "is_duplicated": lambda t: t.filter(C("what").is_duplicated()),
    "str.join": lambda t: t.select(C("who"), C("what").str.join()),
    "int_range": lambda t: t.with_columns(pl.int_range(pl.len()).alias("n")),
    "shuffle": lambda t: t.with_columns(C("what").shuffle()),
    "sample": lambda t: t.select(C("what").sample(1)),
    "inferred": lambda t: t.select("who", C("more").struct.field("day").str.to_date()),
    "a Series": lambda t: t.filter(pl.Series([True, False] * 4 + [True])[:9]),
    "set_sorted": lambda t: t.set_sorted("who"),
    "top_k": lambda t: t.top_k(2, by="who"),
    "interpolate": lambda t: t.select("what", C("who").interpolate()),
    "map_batches": lambda t: t.map_batches(lambda rows: rows.unique("what")),
    "map_elements": lambda t: t.with_columns(
        C("what").map_elements(lambda text: text, return_dtype=pl.String)
    ),
    "rolling": lambda t: t.with_columns(C("who").rolling_sum(2)),
    "qcut": lambda t: t.with_columns(C("who").qcut(2)),
    "to_physical": lambda t: t.with_columns(C("what").cast(pl.Categorical).to_physical()),
}
#: Of which this table and these rows happen to show nothing, or nothing at all can be shown.
LIKE_BY_ROW = {
    "map_elements", "set_sorted", "a Series", "MergeSorted", "Filter", "Explode", "inferred",
    "interpolate",
}  # fmt: skip


@pytest.mark.parametrize("query", BY_ROW)
def test_what_polars_takes_row_by_row_is_known_and_adds_up(tables: list[Path], query: Lazy) -> None:
    for path in tables:
        told = origin_of_lazy(query(pl.scan_parquet(path)))
        assert (told.mixes, told.whole) == ("", True)
        assert origin_of_lazy(query(pl.read_parquet(path).lazy())).mixes == ""
    assert adds_up(lambda path: query(pl.scan_parquet(path)).collect().rows(), tables)


@pytest.mark.parametrize("name", MIXING)
def test_what_polars_takes_of_several_rows_is_refused_by_its_name(
    tables: list[Path], ledger: Ledger, name: str
) -> None:
    query = MIXING[name]
    if name not in LIKE_BY_ROW:
        assert not adds_up(lambda path: query(pl.scan_parquet(path)).collect().rows(), tables)
    for frame in (pl.scan_parquet(tables[-1]), pl.read_parquet(tables[-1]).lazy()):
        assert origin_of_lazy(query(frame)).mixes != ""
    corpus = Corpus(query(pl.scan_parquet(tables[-1])), **READ)
    plan = items(corpus, epsilon=1, delta=1e-6)
    assert not check(corpus, ledger=ledger).ok
    with pytest.raises(dphh.errors.DphhError):
        plan.run(ledger=ledger)
    assert ledger.runs() == []


@pytest.mark.parametrize(
    "scanned",
    [{"n_rows": 2}, {"row_index_name": "n"}, {"skip_rows_after_header": 1}],
    ids=str,
)
def test_rows_that_a_scan_counts_are_not_taken_one_by_one(
    tmp_path: Path, scanned: dict[str, Any]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("who,what\n1,a\n2,b\n3,c\n")
    assert origin_of_lazy(pl.scan_csv(path)).mixes == ""
    assert "where they lie" in origin_of_lazy(pl.scan_csv(path, **scanned)).mixes


@pytest.mark.parametrize(
    "query", [lambda t: t.sort("who").head(3), lambda t: pl.concat([t, t.reverse()]).head(3)]
)
def test_a_limit_that_polars_has_made_part_of_something_else_is_one(
    tables: list[Path], query: Lazy
) -> None:
    """As an optimiser does, which these plans do not go through: another version's may show so."""
    found = []

    def look(plan: Any, *_: Any) -> None:
        walk = Walk()
        walk.through(plan)
        found.append(walk.mixes)

    query(pl.read_parquet(tables[-1]).lazy()).collect(
        engine="in-memory",
        post_opt_callback=look,  # type: ignore[call-overload]
    )
    assert found == ["Slice"]


SQL_BY_ROW = [
    "FROM t",
    "SELECT who, lower(what) AS what FROM t WHERE who > 1 AND what LIKE 'a%' ORDER BY who",
    "SELECT who, unnest(tags) AS what FROM t",
    "FROM t, unnest(t.tags) u(tag)",
    "SELECT who, tag FROM t LEFT JOIN unnest(t.tags) u(tag) ON true",
    "SELECT who, what FROM t UNION ALL BY NAME SELECT who, 'more' AS what FROM t",
    "WITH c AS (FROM t), d AS MATERIALIZED (FROM c) SELECT * EXCLUDE (tags) FROM d",
    "SELECT CAST(who AS VARCHAR) AS who, CASE WHEN what = 'c' THEN 'd' ELSE what END AS what, "
    "more.n, tags[1], coalesce(what, 'x') || 'y', nullif(what, 'c'), split_part(what, ' ', 1), "
    "list_sum([who]), list_transform(tags, lambda x: x || '!'), who % 2 = 1, -who FROM t",
    "SELECT short(what) AS what, who FROM t",
    "FROM query('FROM t')",
    "FROM twice(3)",
    "SELECT who, what FROM (FROM t WHERE what IN ('a b', 'c') AND NOT what IS NULL)",
    "SELECT strftime(more.day::DATE, '%Y') AS what, regexp_replace(what, 'a', 'b'), who FROM t",
    "SELECT COLUMNS('w.*'), {'a': who} AS s, range(who) AS r FROM t",
    "SELECT * FROM seen",
]
SQL_MIXING = {
    "DISTINCT": "SELECT DISTINCT what FROM t",
    "GROUP BY": "SELECT min(who) AS who, what FROM t GROUP BY what HAVING count(*) > 1",
    "GROUP BY ALL": "SELECT what, 1 AS who FROM t GROUP BY ALL",
    "an aggregate": "SELECT max(who) AS who, max(what) AS what FROM t",
    "LIMIT": "FROM t ORDER BY who LIMIT 3",
    "OFFSET": "FROM t ORDER BY who OFFSET 3",
    "a sample": "FROM t USING SAMPLE 3 ROWS",
    "TABLESAMPLE": "FROM t TABLESAMPLE 50%",
    "WINDOW": "SELECT who, row_number() OVER (ORDER BY who, what) AS what FROM t",
    "QUALIFY": "FROM t QUALIFY count(*) OVER (PARTITION BY what) > 1",
    "JOIN": "SELECT t.* FROM t JOIN t u USING (what)",
    "SEMI JOIN": "FROM t SEMI JOIN (FROM t WHERE who = 9) u USING (what)",
    "CROSS JOIN": "SELECT t.* FROM t, t u",
    "UNION": "SELECT what FROM t UNION SELECT what FROM t",
    "EXCEPT ALL": "SELECT what FROM t EXCEPT ALL SELECT what FROM t WHERE who = 9",
    "INTERSECT": "SELECT what FROM t INTERSECT SELECT what FROM t WHERE who = 9",
    "SUBQUERY": "SELECT who, (SELECT max(what) FROM t) AS what FROM t",
    "IN": "FROM t WHERE what IN (SELECT what FROM t WHERE who = 9)",
    "EXISTS": "FROM t WHERE EXISTS (FROM t u WHERE u.who = 9 AND u.what = t.what)",
    "a macro that asks": "SELECT who, most() AS what FROM t",
    "a macro of a table": "FROM once()",
    "a view": "FROM shared",
    "a view over a view": "SELECT who, upper(what) AS what FROM (FROM shared)",
    "RECURSIVE": "WITH RECURSIVE r AS (SELECT what FROM t UNION SELECT what FROM r) FROM r",
    "UNPIVOT": "UNPIVOT (SELECT who, what FROM t) ON what",
    "SUMMARIZE": "SUMMARIZE t",
    "a place": "FROM read_parquet('{path}', file_row_number = true) WHERE file_row_number > 3",
    "query()": "FROM query('SELECT DISTINCT what FROM t')",
    "a macro of DuckDB's": "SELECT weighted_avg(who, who) AS who FROM t",
    "somebody's function": "SELECT who, theirs(what) AS what FROM t",
    "chance": "SELECT *, random() AS n FROM t",
}


def asked_of(path: Path, query: str) -> duckdb.DuckDBPyRelation:
    con = duckdb.connect()
    for statement in (
        f"CREATE VIEW t AS FROM '{path}'",
        "CREATE VIEW seen AS SELECT who, trim(what) AS what FROM t",
        "CREATE VIEW shared AS SELECT what, min(who) AS who FROM t GROUP BY what",
        "CREATE MACRO short(x) AS left(x, 1)",
        "CREATE MACRO twice(n) AS TABLE FROM t UNION ALL FROM t",
        "CREATE MACRO once() AS TABLE SELECT DISTINCT what FROM t",
        "CREATE MACRO most() AS (SELECT max(what) FROM t)",
    ):
        con.execute(statement)
    con.create_function("theirs", lambda text: text, ["VARCHAR"], "VARCHAR")
    return con.sql(query.replace("{path}", str(path)))


@pytest.mark.parametrize("query", SQL_BY_ROW)
def test_what_duckdb_takes_row_by_row_is_known_and_adds_up(tables: list[Path], query: str) -> None:
    for path in tables:
        told = origin_of_relation(asked_of(path, query))
        assert (told.mixes, told.whole) == ("", True)
    assert adds_up(lambda path: asked_of(path, query).fetchall(), tables)


@pytest.mark.parametrize("name", SQL_MIXING)
def test_what_duckdb_takes_of_several_rows_is_refused(
    tables: list[Path], ledger: Ledger, name: str
) -> None:
    relation = asked_of(tables[-1], SQL_MIXING[name])
    assert origin_of_relation(relation).mixes != ""
    columns = {"user": relation.columns[0], "item": relation.columns[-1]}
    plan = items(Corpus(relation, **columns), epsilon=1, delta=1e-6)
    with pytest.raises(UsageError, match=r"row_wise: .*row_wise=True"):
        plan.run(ledger=ledger)
    assert ledger.runs() == []


def test_the_relational_methods_are_told_apart_too(tables: list[Path]) -> None:
    rows = duckdb.connect().read_parquet(str(tables[-1]))
    for plain in (rows.filter("who > 1").project("who, upper(what) AS what"), rows.union(rows)):
        assert origin_of_relation(plain).mixes == ""
    for other in (rows.distinct(), rows.limit(2), rows.aggregate("who, max(what)")):
        assert origin_of_relation(other).mixes != ""


def shared(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path).unique("what")


def test_whoever_vouches_runs_and_the_manifest_says_so(tables: list[Path], ledger: Ledger) -> None:
    refused = items(Corpus(shared(tables[-1]), **READ), epsilon=1, delta=1e-6)
    assert "would refuse" in refused.describe(ledger)
    assert "would refuse" in refused._repr_html_()
    assert compare("items", refused.corpus, epsilon=1, delta=1e-6, ledger=ledger).plans[0].refused

    corpus = Corpus(shared(tables[-1]), row_wise=True, **READ)
    plan = items(corpus, epsilon=1, delta=1e-6)
    assert plan.privacy.row_wise == "said"
    privacy = plan.run(ledger=ledger).manifest["privacy"]
    assert privacy == plan.privacy.to_json()
    assert privacy["row_wise"] == "said"
    assert "the caller assures this" in privacy["caveats"][0]
    for shown in (plan.describe(ledger), plan._repr_html_(), repr(in_words(privacy))):
        assert "the caller assures this" in " ".join(shown.split())
    assert plan_from_json(plan.dumps()).events == plan.events
    assert corpus.to_json()["row_wise"] is True
    assert "row_wise=True" in repr(corpus)


def in_memory(path: Path) -> list[Any]:
    rows = pl.read_parquet(path)
    con = duckdb.connect()
    con.execute(f"CREATE TABLE held AS FROM '{path}'")
    return [rows, rows.to_arrow(), rows.lazy().filter(C("who") > 1), con.table("held")]


def test_where_it_cannot_be_seen_the_promise_hangs_on_it(
    tables: list[Path], ledger: Ledger
) -> None:
    for source in in_memory(tables[-1]):
        plan = items(Corpus(source, **READ), epsilon=1, delta=1e-6)
        privacy = plan.run(ledger=ledger, again=True).manifest["privacy"]
        assert privacy == plan.privacy.to_json()
        assert privacy["row_wise"] == "assumed"
        assert "how the table was made cannot be inspected" in privacy["caveats"][0]
        assert "how the table was made cannot be inspected" in " ".join(
            plan.describe(ledger).split()
        )
        assert plan_from_json(plan.dumps()).events == plan.events
        assert items(Corpus(source, row_wise=True, **READ), epsilon=1, delta=1e-6).privacy.row_wise


def test_where_it_is_seen_or_rows_are_a_files_own_it_hangs_on_nothing(
    tables: list[Path], ledger: Ledger
) -> None:
    lazy = pl.scan_parquet(tables[-1]).filter(C("who") > 1)
    for source, made in ((lazy, "seen"), (asked_of(tables[-1], "FROM t"), "seen"),
                         (tables[-1], None)):  # fmt: skip
        privacy = items(Corpus(source, **READ), epsilon=1, delta=1e-6).run(ledger=ledger).privacy
        assert privacy.get("row_wise") == made
        assert privacy["caveats"] == []
    found = check(Corpus(lazy, **READ), ledger=ledger)
    assert any(each.what == "rows" and each.verdict == "good" for each in found.findings)


@pytest.mark.parametrize("said", ["yes", 1, None])
def test_it_is_said_by_true_or_false(tables: list[Path], said: Any) -> None:
    with pytest.raises(UsageError, match="row_wise: found"):
        Corpus(pa.table({"who": [1], "what": ["a"]}), row_wise=said, **READ)


def test_of_files_it_is_not_said(tables: list[Path]) -> None:
    with pytest.raises(UsageError, match="row_wise: applies only to a frame or a view"):
        Corpus(tables[0], row_wise=True, **READ)


def test_frames_and_sql_say_it_as_python_does(tables: list[Path], ledger: Ledger) -> None:
    plan = shared(tables[-1]).dphh.items(row_wise=True, epsilon=1, delta=1e-6, **READ)  # type: ignore[attr-defined]
    assert plan.privacy.row_wise == "said"

    con = dphh.connect(ledger)
    con.execute(f"CREATE VIEW shared AS SELECT DISTINCT who, what FROM '{tables[-1]}'")
    asked = "'shared', user_column := 'who', text_column := 'what', epsilon := 1, delta := 1e-6"
    with pytest.raises(duckdb.Error, match=r"DISTINCT.*row_wise := true"):
        con.execute(f"FROM dphh_items({asked})")
    assert ledger.runs() == []
    con.execute(f"FROM dphh_items({asked}, row_wise := true)").fetchall()
    (run,) = ledger.runs()
    assert ledger.release(run.run_id).manifest["privacy"]["row_wise"] == "said"

"""`ngrams` on every engine: what its ladders release.

`test_plain_sql.py` has every level as the specification has, `test_neighbours.py` and
`test_forecast_neighbours.py` what a user changes.
"""

from __future__ import annotations

import polars as pl

from dphh import Corpus, ngrams
from dphh.levels.ngrams import ForecastLevel


def test_what_all_share_is_found_to_its_full_length_at_no_more_than_was_priced(engine, tmp_path):
    """A sentence that everybody shares, words of all frequencies, and users of one word."""
    rows = [(user, f"to be or not w{user % 7} w{user % 40} w{user}") for user in range(4_000)]
    rows += [(user, "to be") for user in range(4_000, 4_200)] + [(5_000, "alone")]
    path = tmp_path / "corpus.parquet"
    pl.DataFrame(rows, schema=["who", "what"], orient="row").write_parquet(path)
    corpus = Corpus(path, user="who", text="what")
    release = ngrams(corpus, max_n=4, epsilon=4, delta=1e-6, method="forecast").run(engine=engine)
    found = release.to_polars()
    assert {"to be", "be or not", "to be or not"} <= set(found["item"])
    assert not set(found["item"]) & {"alone", "w41"}
    assert (found.filter(pl.col("level") > 1)["score"] > 0).all()
    assert found.height == found.unique(["level", "item"]).height

    levels = release.manifest["levels"]
    above = [level for level in levels if level["kind"] == ForecastLevel.kind]
    assert [level["level"] for level in above] == [2, 3, 4]
    spent = sum(level["sigma"] ** -2 for level in levels if level["kind"] == "set_union")
    spent += sum(level[name] ** -2 for level in above for name in ("first_sigma", "second_sigma"))
    assert spent <= above[0]["total_sigma"] ** -2 * (1 + 1e-9)

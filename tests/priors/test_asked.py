"""`prior=`: what may be one, what is refused before anything is paid, and what is said of it."""

from __future__ import annotations

import polars as pl
import pytest

import dphh
from dphh import Corpus, UsageError
from dphh.errors import NoColumnError
from dphh.ledger import Request
from dphh.public.counting import cache_folder

ASK = {"max_n": 2, "epsilon": 4.0, "delta": 1e-6}
PUBLIC = {"prior_is_public": True}
NEWS = ["good morning all", "good morning you", "good evening all", "you good"]


@pytest.fixture
def private(written):
    return written([(user, "good morning") for user in range(300)])


@pytest.fixture
def news(tmp_path):
    path = tmp_path / "public" / "news.parquet"
    path.parent.mkdir()
    pl.DataFrame({"body": NEWS}).write_parquet(path)
    return path


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "words.parquet"
    pl.DataFrame({"item": ["good", "morning", "good morning"], "count": [9, 5, 4]}).write_parquet(
        path
    )
    return path


def of_text(path, **options):
    return Corpus(str(path), user="body", **({"text": "body"} | options))


def listed(plan):
    return plan.price.prior.vocabulary.to_pylist()


def test_a_text_or_a_table_is_given_as_a_corpus_a_file_or_a_frame(private, news, table):
    for priors, words in (
        ([{"prior": of_text(news)}, {"prior": news, "prior_text": "body"}],
         ["all", "good", "morning", "you"]),
        ([{"prior": table}, {"prior": pl.read_parquet(table)}], ["good", "morning"]),
    ):  # fmt: skip
        one, other = (dphh.ngrams(private, **prior, **PUBLIC, **ASK) for prior in priors)
        assert listed(one) == words
        assert (one.price, one["prior"]) == (other.price, other["prior"])


def test_a_release_is_given_as_it_is_by_its_folder_or_its_run_and_needs_no_word(
    private, ledger, tmp_path
):
    earlier = dphh.ngrams(private, **ASK).run(ledger=ledger)
    folder = earlier.save(tmp_path / "out")
    plans = [dphh.ngrams(private, prior=each, **ASK) for each in (earlier, folder, earlier.run_id)]
    assert len(earlier) > 0
    assert [listed(plan) for plan in plans] == [["good", "morning"]] * 3
    assert len({plan["prior"] for plan in plans}) == 1
    assert f"run {earlier.run_id}" in plans[0].privacy.caveats[0]


def test_what_was_counted_within_groups_is_listed_once(private, ledger, tmp_path):
    rows = pl.read_parquet(private.where[0]).with_columns(lang=pl.lit("en"))
    rows.write_parquet(tmp_path / "grouped.parquet")
    grouped = Corpus(str(tmp_path / "grouped.parquet"), user="who", text="what")
    counted = {"counts": 0.3, "by": "lang", "groups": ["en"]}
    earlier = dphh.ngrams(grouped, **counted, **ASK).run(ledger=ledger)
    assert len(earlier) == 2 * len({row["item"] for row in earlier})
    plan = dphh.ngrams(private, prior=earlier, **ASK)
    assert listed(plan) == ["good", "morning"]
    assert [len(grams) for grams in plan.price.prior.grams] == [2, 1]


def test_a_release_of_another_verb_has_no_counts(private, ledger):
    found = dphh.trie(private, max_length=2, epsilon=4.0, delta=1e-6).run(ledger=ledger)
    with pytest.raises(UsageError, match="found a release of trie"):
        dphh.ngrams(private, prior=found, **ASK)


@pytest.mark.parametrize("kind", ["text", "table", "frame"])
def test_what_is_not_declared_public_is_refused(private, news, table, kind):
    prior = {"text": of_text(news), "table": table, "frame": pl.read_parquet(table)}[kind]
    with pytest.raises(UsageError, match=r"prior_is_public: .* say prior_is_public=True"):
        dphh.ngrams(private, prior=prior, **ASK)
    assert not cache_folder().exists()


def test_a_column_that_the_prior_lacks_is_named_by_its_own_option(private, news):
    said = r"^prior_text: .*no column 'boddy'; did you mean"
    with pytest.raises(NoColumnError, match=said) as refused:
        dphh.ngrams(private, prior=news, prior_text="boddy", **PUBLIC, **ASK)
    assert refused.value.option == "prior_text"


@pytest.mark.parametrize("alone", [{"prior_is_public": True}, {"prior_text": "body"}])
def test_what_speaks_of_a_prior_goes_with_one(private, alone):
    with pytest.raises(UsageError, match="found no prior; give prior="):
        dphh.ngrams(private, **alone, **ASK)


def test_the_forecast_alone_takes_one(private, table):
    with pytest.raises(UsageError, match="method='dpne' takes nothing"):
        dphh.ngrams(private, prior=table, method="dpne", **PUBLIC, **ASK)


def test_a_prior_is_read_as_the_data_are(private, news):
    with pytest.raises(UsageError, match="lower=False, and the corpus otherwise"):
        dphh.ngrams(private, prior=of_text(news, lower=False), **PUBLIC, **ASK)
    plan = dphh.ngrams(prior=of_text(news), **PUBLIC, **ASK)
    with pytest.raises(UsageError, match="lower=True, and the corpus otherwise"):
        plan.run(corpus=Corpus(*private.where, user="who", text="what", lower=False))


def test_which_rows_of_the_corpus_count_is_not_asked_of_the_prior(news, ledger, tmp_path):
    rows = {"user": range(300), "text": ["good morning"] * 300, "land": ["de", "fr"] * 150}
    pl.DataFrame(rows, strict=False).write_parquet(tmp_path / "lands.parquet")
    german, french = (
        Corpus(str(tmp_path / "lands.parquet"), user="user", text="text", where=f"land = '{land}'")
        for land in ("de", "fr")
    )
    listing = tmp_path / "listed.parquet"
    pl.DataFrame({"item": ["good", "morning"], "count": [9, 5]}).write_parquet(listing)
    assert listed(dphh.ngrams(german, prior=listing, **PUBLIC, **ASK)) == ["good", "morning"]
    by_text = dphh.ngrams(german, prior=news, prior_text="body", **PUBLIC, **ASK)
    assert listed(by_text) == ["all", "good", "morning", "you"]
    release = by_text.run(ledger=ledger)
    assert dphh.ngrams(french, prior=release, **ASK).run(ledger=ledger)


def test_a_prior_without_a_word_is_refused(private, tmp_path):
    pl.DataFrame({"item": ["a b"], "count": [2]}).write_parquet(tmp_path / "none.parquet")
    with pytest.raises(UsageError, match="no word is listed"):
        dphh.ngrams(private, prior=tmp_path / "none.parquet", **PUBLIC, **ASK)


def test_how_a_text_becomes_tokens_is_the_corpuss_to_say(table):
    with pytest.raises(UsageError, match="pass the corpus to the verb"):
        dphh.ngrams(prior=table, **PUBLIC, **ASK)


def test_the_digest_is_of_the_request(private, news, table):
    plain, one, same, other = (
        Request.of(plan.price, plan.corpus)
        for plan in (
            dphh.ngrams(private, **ASK),
            dphh.ngrams(private, prior=of_text(news), **PUBLIC, **ASK),
            dphh.ngrams(private, prior=news, prior_text="body", **PUBLIC, **ASK),
            dphh.ngrams(private, prior=table, **PUBLIC, **ASK),
        )
    )
    assert one.parameters == same.parameters
    assert "prior" not in plain.parameters
    assert one.parameters["prior"] != other.parameters["prior"]


def test_the_plan_and_the_manifest_say_what_is_not_covered(private, news, ledger):
    plan = dphh.ngrams(private, prior=of_text(news), **PUBLIC, **ASK)
    digest = plan["prior"]
    assert plan.price.prior.digest == digest
    said = " ".join(plan.describe().split())
    assert "the promise does not cover the prior's text" in said
    assert f"4 listed words (SHA-256 {digest})" in said
    assert "at most b words of your list that nobody need hold" in said
    manifest = plan.run(ledger=ledger).manifest
    assert manifest["parameters"]["prior"] == digest
    assert manifest["prior"]["words"] == 4
    assert manifest["prior"]["digest"] == digest
    assert "the promise does not cover" in manifest["prior"]["caveat"]
    assert manifest["prior"]["caveat"] in manifest["privacy"]["caveats"]


def test_a_plan_that_was_written_down_says_that_its_prior_is_gone(private, news):
    plan = dphh.ngrams(private, prior=of_text(news), **PUBLIC, **ASK)
    with pytest.raises(UsageError, match="make the plan again"):
        dphh.plan_from_json(plan.dumps())


def test_what_is_kept_says_nothing_of_the_private_data(news, tmp_path):
    """Neighbours by a whole corpus: the same file, to the byte, and the same plan's words."""
    kept = []
    for rows in (["sentinel one"], ["other two"] * 99):
        path = tmp_path / "private.parquet"
        pl.DataFrame({"who": range(len(rows)), "what": rows}).write_parquet(path)
        private = Corpus(str(path), user="who", text="what")
        plan = dphh.ngrams(private, prior=of_text(news), **PUBLIC, **ASK)
        (file,) = cache_folder().iterdir()
        kept.append((file.name, file.read_bytes(), plan.describe(), plan.dumps()))
        file.unlink()
    assert kept[0] == kept[1]


def test_sql_takes_one(private, table, news, ledger):
    con = dphh.connect(ledger)
    asked = (
        f"'{private.where[0]}', user_column := 'who', text_column := 'what', max_n := 2, "
        "epsilon := 4.0, delta := 1e-6"
    )
    with pytest.raises(Exception, match="say prior_is_public := true"):
        con.sql(f"FROM dphh_plan_ngrams({asked}, prior := '{table}')").fetchall()
    public = f"{asked}, prior_is_public := true"
    told = con.sql(f"FROM dphh_plan_ngrams({public}, prior := '{table}')").fetchall()
    assert "does not cover the prior" in " ".join(said for _, _, said, _ in told)
    found = con.sql(f"FROM dphh_ngrams({public}, prior := '{news}', prior_text := 'body')")
    assert {"good", "morning"} <= {row[1] for row in found.fetchall()}
    con.sql(f"CREATE VIEW known AS FROM '{table}'")
    told = con.sql(f"FROM dphh_plan_ngrams({public}, prior := 'known')").fetchall()
    assert "with 2 listed words" in " ".join(said for _, _, said, _ in told)
    (run,) = ledger.runs()
    told = con.sql(f"FROM dphh_plan_ngrams({asked}, prior := '{run.run_id}')").fetchall()
    assert run.run_id in " ".join(said for _, _, said, _ in told)


def test_plans_with_and_without_a_prior_are_compared(private, news, table, ledger):
    asked = {**ASK, "prior": [None, of_text(news), table], **PUBLIC}
    found = dphh.compare(dphh.ngrams, private, ledger=ledger, **asked)
    assert found["prior"].to_list() == [None, "news.parquet", "words.parquet"]
    assert ledger.runs() == []

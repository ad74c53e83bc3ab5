"""`prior=`: what may be one, what is refused before anything is paid, and what is said of it."""

import polars as pl
import pytest

import dphh
from dphh import Corpus, CorpusError, UsageError
from dphh.ledger import Request
from dphh.public.texts import cache_folder

ASK = {"max_n": 2, "epsilon": 4.0, "delta": 1e-6}
PUBLIC = {"prior_is_public": True}
TEXT = {"prior_text": "body", **PUBLIC}
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


def listed(plan):
    return plan.price.prior.vocabulary.to_pylist()


def test_a_text_or_a_table_is_given_as_a_file_or_a_frame(private, news, table):
    for path, options, words in (
        (news, TEXT, ["all", "good", "morning", "you"]), (table, PUBLIC, ["good", "morning"]),
    ):  # fmt: skip
        one, other = (
            dphh.ngrams(private, prior=each, **options, **ASK)
            for each in (path, pl.read_parquet(path))
        )
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


def test_rows_without_a_user_change_no_token_of_a_prior(private, ledger):
    dropping = Corpus(private.where, user="who", text="what", null_users="drop")
    earlier = dphh.ngrams(dropping, **ASK).run(ledger=ledger)
    assert listed(dphh.ngrams(private, prior=earlier, **ASK)) == ["good", "morning"]


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


@pytest.mark.parametrize("text", [{}, {"prior_text": "body"}])
def test_what_is_not_declared_public_is_refused(private, news, text):
    with pytest.raises(UsageError, match=r"prior_is_public: .* say prior_is_public=True"):
        dphh.ngrams(private, prior=news, **text, **ASK)
    assert not cache_folder().exists()


def test_what_cannot_be_read_as_a_prior_is_refused(private, news, table, tmp_path, ledger):
    trie = dphh.trie(private, max_length=2, epsilon=4.0, delta=1e-6).run(ledger=ledger)
    pl.DataFrame({"item": ["a b"], "count": [2]}).write_parquet(tmp_path / "none.parquet")
    for options, said in (
        ({"prior": trie}, "found a release of trie"),
        ({"prior_is_public": True}, "found no prior; give prior="),
        ({"prior": table, "method": "dpne", **PUBLIC}, "method='dpne' takes nothing"),
        ({"prior": tmp_path / "none.parquet", **PUBLIC}, "it lists no word"),
    ):
        with pytest.raises(UsageError, match=said):
            dphh.ngrams(private, **options, **ASK)
    with pytest.raises(CorpusError, match=r"^prior, prior_text: .*no column 'boddy'; did you mean"):
        dphh.ngrams(private, prior=news, prior_text="boddy", **PUBLIC, **ASK)
    with pytest.raises(UsageError, match="pass the corpus to the verb"):
        dphh.ngrams(prior=table, **PUBLIC, **ASK)


def test_a_release_is_read_as_the_data_are(private, ledger):
    otherwise = Corpus(*private.where, user="who", text="what", lower=False)
    earlier = dphh.ngrams(private, **ASK).run(ledger=ledger)
    with pytest.raises(UsageError, match="lower=True, the corpus's were not"):
        dphh.ngrams(otherwise, prior=earlier, **ASK)
    with pytest.raises(UsageError, match="lower=True, the corpus's were not"):
        dphh.ngrams(prior=earlier, **ASK).run(corpus=otherwise)


def test_which_rows_of_the_corpus_count_is_not_asked_of_the_prior(private, news, ledger):
    lands = pl.read_parquet(private.where[0]).with_columns(land=pl.col("who") % 2)
    one, other = (Corpus(lands, user="who", text="what", where=f"land = {n}") for n in (0, 1))
    plan = dphh.ngrams(one, prior=news, **TEXT, **ASK)
    assert listed(plan) == ["all", "good", "morning", "you"]
    assert dphh.ngrams(other, prior=plan.run(ledger=ledger), **ASK).run(ledger=ledger)


def test_the_digest_is_of_the_request(private, news, table):
    plain, one, other = (
        Request.of(plan.price, plan.corpus)
        for plan in (
            dphh.ngrams(private, **ASK),
            dphh.ngrams(private, prior=news, **TEXT, **ASK),
            dphh.ngrams(private, prior=table, **PUBLIC, **ASK),
        )
    )
    assert "prior" not in plain.parameters
    assert one.parameters["prior"] != other.parameters["prior"]


def test_the_plan_and_the_manifest_say_what_is_not_covered(private, news, ledger):
    plan = dphh.ngrams(private, prior=news, **TEXT, **ASK)
    digest = plan["prior"]
    assert plan.price.prior.digest == digest
    said = " ".join(plan.describe().split())
    assert "the promise does not cover the prior's text" in said
    assert f"4 listed words (SHA-256 {digest})" in said
    assert "the expected number that no user holds is at most 1" in said
    manifest = plan.run(ledger=ledger).manifest
    assert manifest["parameters"]["prior"] == digest
    assert manifest["prior"]["words"] == 4
    assert manifest["prior"]["digest"] == digest
    assert "the promise does not cover" in manifest["prior"]["caveat"]
    assert manifest["prior"]["caveat"] in manifest["privacy"]["caveats"]


def test_a_plan_that_was_written_down_says_that_its_prior_is_gone(private, news):
    plan = dphh.ngrams(private, prior=news, **TEXT, **ASK)
    with pytest.raises(UsageError, match="make the plan again"):
        dphh.plan_from_json(plan.dumps())


def test_what_is_kept_says_nothing_of_the_private_data(news, tmp_path):
    """Neighbours by a whole corpus: the same file, to the byte, and the same plan's words."""
    kept = []
    for rows in (["sentinel one"], ["other two"] * 99):
        path = tmp_path / "private.parquet"
        pl.DataFrame({"who": range(len(rows)), "what": rows}).write_parquet(path)
        private = Corpus(str(path), user="who", text="what")
        plan = dphh.ngrams(private, prior=news, **TEXT, **ASK)
        (file,) = cache_folder().iterdir()
        kept.append((file.name, file.read_bytes(), plan.describe(), plan.dumps()))
        file.unlink()
    assert kept[0] == kept[1]


def test_sql_takes_one(private, table, news, ledger):
    con = dphh.connect(ledger=ledger)
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
    assert "has 2 listed words" in " ".join(said for _, _, said, _ in told)
    (run,) = ledger.runs()
    told = con.sql(f"FROM dphh_plan_ngrams({asked}, prior := '{run.run_id}')").fetchall()
    assert run.run_id in " ".join(said for _, _, said, _ in told)

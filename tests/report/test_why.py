"""Why a phrase is not there: as far as the release says, and never more. Its answers: said.txt."""

from __future__ import annotations

import pytest

from dphh import Corpus, UsageError, ngrams
from dphh.testing import SeededRandomness
from tests.report.made import CONTENT, items, ladder


def test_a_phrase_is_text_or_a_list_of_tokens():
    with pytest.raises(UsageError, match="list of tokens"):
        ladder().why([1, 2])
    listed = items()
    listed.manifest["parameters"]["content"] = {**CONTENT, "reading": "list"}
    with pytest.raises(UsageError, match="the corpus had lists"):
        listed.why("a")


def test_a_run_of_its_own_explains_itself(written):
    rows = [(person, "see you later" + " maybe" * (person < 3)) for person in range(400)]
    corpus: Corpus = written(rows)
    release = ngrams(corpus, max_n=3, epsilon=1.0, delta=1e-6, max_items=5).run(
        randomness=SeededRandomness(1)
    )
    assert release.why("see you later").reason == "released"
    assert release.why("later maybe").missing == (("maybe",),)
    assert release.why("maybe").reason == "below"

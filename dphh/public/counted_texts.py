"""The n-grams of a public text, counted as the private data are read: by DuckDB, out of core."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dphh.corpora.formats import opened
from dphh.corpus import Corpus
from dphh.engines.duckdb.run import DuckDBRun
from dphh.mechanisms.released_rows import whole
from dphh.priors.prior import Integers, Prior, PublicGrams
from dphh.public.made import prior_of
from dphh.session.protocol import Limits
from dphh.udfs.draws.randomness import SystemRandomness

#: A word is listed if it occurs so often; in a text of fewer words than SMALL, so often.
LEAST, LEAST_OF_SMALL, SMALL = 3, 2, 1_000_000
#: Of a text of more words than this, longer n-grams that occur once are left out: there are about
#: as many of them as words, and they say next to nothing.
LARGE_TEXT = 1_000_000
#: What DuckDB may take; the rest is spilled.
MEMORY_LIMIT = "1GB"


def counted(corpus: Corpus, max_n: int) -> Prior:
    """Count the words and the n-grams of up to `max_n` words that occur often enough."""
    run = DuckDBRun(opened(corpus), SystemRandomness(), Limits(memory=MEMORY_LIMIT))
    try:
        run.hold_rows()
        run.execute("public_words")
        total = int(run.fetch("public_total").column("total")[0].as_py())
        run.execute("public_list", least=LEAST if total >= SMALL else LEAST_OF_SMALL)
        run.drop("word_counts")
        listed = run.fetch("public_listed")
        vocabulary = whole(listed.column("word"), pa.string())
        numbers = np.arange(len(vocabulary), dtype=np.int64)[:, None]
        grams = [PublicGrams(numbers, _integer_column(listed, "occurs"))]
        if max_n > 1:
            run.execute("public_places", longest=corpus.content.max_text_length)
        for length in range(2, max_n + 1):
            run.execute("public_pairs", least=2 if total > LARGE_TEXT else 1)
            grams.append(_grams_one_longer(grams[-1], run))
            if length < max_n:
                run.execute("public_next_places")
    finally:
        run.close()
    return prior_of(vocabulary, grams, total)


def _grams_one_longer(below: PublicGrams, run: DuckDBRun) -> PublicGrams:
    """The n-grams that are one word longer: the words of each pair's left gram and the last word of
    its right gram."""
    found = run.fetch("public_grams")
    left, right = _integer_column(found, "left_gram"), _integer_column(found, "right_gram")
    words = np.concatenate([below.words[left], below.words[right][:, -1:]], axis=1)
    return PublicGrams(words, _integer_column(found, "occurs"))


def _integer_column(table: pa.Table, name: str) -> Integers:
    found: Integers = whole(table.column(name), pa.int64()).to_numpy()
    return found

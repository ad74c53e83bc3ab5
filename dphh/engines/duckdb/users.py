"""Whose row it is, and whether it counts, as DuckDB's SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.rows.conditions import condition
from dphh.sources.finding import NO_UNITS
from dphh.sources.quoted import identifier

#: How DuckDB writes the types whose values are written alike everywhere.
PLAIN_TYPE = re.compile(
    r'VARCHAR|BOOLEAN|DATE|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|ENUM\(.*\)|"NULL"', re.DOTALL
)


def user_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """The unit that a row belongs to. Several values become one text that determines each of them;
    NULL if one of them is NULL."""
    if isinstance(corpus.user, str):
        return identifier(corpus.user)
    parts = []
    for option, column in corpus.columns_of_user:
        if not PLAIN_TYPE.fullmatch(types[column]):
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=types[column]))
        parts.append(f"spelled_in_bytes({identifier(column)})")
    return " || ".join(parts)


def counts_sql(corpus: Corpus) -> str:
    """The condition for rows that are read: they have content and meet the corpus's condition."""
    holds = f"{identifier(corpus.content.column)} IS NOT NULL"
    if corpus.content.where is not None:
        holds += f" AND {condition(corpus.content.where).sql}"
    return holds

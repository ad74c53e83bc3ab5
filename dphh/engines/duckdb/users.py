"""Whose row it is, and whether it counts, as DuckDB's SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dphh.corpora.quoted import identifier
from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.rows.conditions import condition
from dphh.rows.user import NO_USERS, columns_of

#: Types of groups: their values are written alike everywhere.
PLAIN_TYPE = re.compile(
    r'VARCHAR|BOOLEAN|DATE|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|ENUM\(.*\)|"NULL"', re.DOTALL
)
#: Types of user ids: of these equal values are written alike.
_TYPES_OF_USERS = re.compile(rf"{PLAIN_TYPE.pattern}|UUID|DECIMAL\(.*\)", re.DOTALL)


def user_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """The id of the row's user as text: all later steps see this text alone. Several columns make
    one text that determines the value of each; NULL if one of them is NULL."""
    for option, column in corpus.columns_of_user:
        if not _TYPES_OF_USERS.fullmatch(types[column]):
            raise CorpusError(NO_USERS.format(option=option, column=column, kind=types[column]))
    if isinstance(corpus.user, str):
        return f"CAST({identifier(corpus.user)} AS VARCHAR)"
    return " || ".join(f"spelled_in_bytes({identifier(each)})" for each in corpus.user)


def counts_sql(corpus: Corpus) -> str:
    """The condition for rows that are read: they have content and, if others are to be dropped, a
    user; and they meet the corpus's condition."""
    needed = [corpus.content.column]
    if corpus.content.null_users == "drop":
        needed += columns_of(corpus.user)
    holds = " AND ".join(f"{identifier(column)} IS NOT NULL" for column in needed)
    if corpus.content.where is not None:
        holds += f" AND {condition(corpus.content.where).sql}"
    return holds

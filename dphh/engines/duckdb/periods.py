"""The unit and the period of a row, as DuckDB's SQL with the macros of `sql/rows/periods.sql`.

The unit of a corpus with a period is the pair (user, period), spelled as one text: all that bounds,
salts and draws for a user does so for the pair, and nothing beyond this file knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dphh.corpus import Corpus
from dphh.errors import CorpusError
from dphh.rows.conditions import condition
from dphh.rows.period import PeriodColumn
from dphh.sources.finding import NO_PERIOD, NO_UNITS
from dphh.sources.near_periods import near_sql
from dphh.sources.quoted import identifier, literal

#: How DuckDB writes the types whose values are written alike everywhere.
PLAIN_TYPE = re.compile(
    r'VARCHAR|BOOLEAN|DATE|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|ENUM\(.*\)|"NULL"', re.DOTALL
)
_WHOLE_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
#: How literals are written of the types whose comparisons let DuckDB skip row groups.
_LITERAL_OF_TYPE = {
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
}
_TYPES_WITHOUT_ZONE = re.compile(r"DATE|TIMESTAMP(_S|_MS|_NS)?")


def user_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """The unit that a row belongs to. Several values become one text that determines each of them;
    NULL if one of them is NULL."""
    if not corpus.unit_is_spelled:
        return identifier(corpus.columns_of_user[0][1])
    parts = []
    for option, column in corpus.columns_of_user:
        if not PLAIN_TYPE.fullmatch(types[column]):
            raise CorpusError(NO_UNITS.format(option=option, column=column, kind=types[column]))
        parts.append(f"spelled_in_bytes({identifier(column)})")
    if corpus.period is not None:
        parts.append(f"spelled_in_bytes({period_sql(corpus.period, types)})")
    return " || ".join(parts)


def counts_sql(corpus: Corpus, types: Mapping[str, str]) -> str:
    """The condition for rows that are read: they have content, meet the corpus's condition and are
    in one of the periods. A row without a period is kept, so that it is refused like a row with a
    NULL user id."""
    holds = f"{identifier(corpus.content.column)} IS NOT NULL"
    if corpus.content.where is not None:
        holds += f" AND {condition(corpus.content.where).sql}"
    if corpus.period is None or corpus.periods is None:
        return holds
    period = period_sql(corpus.period, types)
    within = [f"{period} BETWEEN {first} AND {last}" for first, last in corpus.periods]
    literal_of = _LITERAL_OF_TYPE.get(types[corpus.period.column])
    near = near_sql(
        corpus.period,
        corpus.periods,
        identifier(corpus.period.column),
        literal_of,
        zoned=literal_of == "TIMESTAMPTZ",
    )
    return f"{holds} AND ({' OR '.join([f'{period} IS NULL', *within])}){near}"


def period_sql(period: PeriodColumn, types: Mapping[str, str]) -> str:
    """The number of the row's period; NULL if it has none."""
    column, kind = identifier(period.column), types[period.column]
    if period.by == "number":
        if kind == "VARCHAR":
            return f"period_by_number(written_number({column}))"
        if not _WHOLE_NUMBER.fullmatch(kind):
            raise CorpusError(NO_PERIOD.format(period=period, kind=kind))
        return f"period_by_number({column})"
    if kind == "VARCHAR":
        day = f"written_date({column})"
    elif kind == "TIMESTAMP WITH TIME ZONE":
        day = f"CAST(timezone({literal(period.zone)}, {column}) AS DATE)"
    elif _TYPES_WITHOUT_ZONE.fullmatch(kind):
        day = f"CAST({column} AS DATE)"
    else:
        raise CorpusError(NO_PERIOD.format(period=period, kind=kind))
    return f"period_by_{period.by}({day})"

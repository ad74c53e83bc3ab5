"""A corpus: where the data is and how to read it. Constructing one reads no data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Literal

from dphh.errors import UsageError
from dphh.reader.conditions import (
    Bound,
    columns_of_bounds,
    combined_condition,
    joined_by_and,
)
from dphh.reader.content import (
    MAX_TEXT_LENGTH,
    MAX_TOKEN_LENGTH,
    Content,
    NullUsers,
    ReadAs,
    TooLong,
)
from dphh.reader.paths import files_named
from dphh.reader.sources import is_list_column, located_source
from dphh.wording.notebook import InNotebooks
from dphh.wording.options import checked_call, shown

#: The promise about a frame, a relation or a view holds only on this condition.
PROMISE_CONDITION = "each row was made from rows of its own user"
#: For a user column of a type whose equal values may have two spellings, such as 0.0 and -0.0.
USER_TYPE_MESSAGE = (
    "{option}: column {column} is {kind}; cast it to text or to an integer in a view, so that "
    "equal users are spelled equally"
)
ROWS_WITHOUT_USER_MESSAGE = (
    "user: found rows with a NULL user id, as of a file without the column (`dphh check` tells), "
    "and dphh cannot bound what they add; give each row a user id, or leave the file out, or let "
    "null_users='drop' leave the rows out"
)

#: What each option of a corpus does, in one line. The options that most corpora need are first.
HELP = {
    "user": "The column of user ids, or several in combination.",
    "text": "The column of texts, which are split into words.",
    "item": "The column of items, each row one whole item.",
    "as_": "Read content as words, characters, whole or list.",
    "where": "Only rows that meet this, as \"country = 'DE'\".",
    "since": "Only rows from this value on, as day=2026-01-01.",
    "until": "Only rows before this value, as day=2026-02-01.",
    "lower": "Change to lower case; the default for words.",
    "split": "Words: unicode, white space, or a pattern they match.",
    "strip": "Characters to strip from both ends of tokens.",
    "keep": "Keep only tokens that match this in full.",
    "drop": "Drop tokens that match this in full.",
    "max_token_length": "The most characters of a token.",
    "too_long": "Longer tokens: truncate, drop or error.",
    "max_text_length": "The most characters that are read of a text.",
    "null_users": "Rows with a NULL user id: refuse or drop.",
}
#: The options that choose rows. A request that names an account's corpus may give these, and no
#: other option of a corpus: the account has those.
ROW_OPTIONS = {"where", "since", "until"}


@dataclass(frozen=True, eq=False)
class ReadOnce:
    """The rows of a prepared corpus, which nobody else can change; and what follows from them."""

    rows: Any
    _known: dict[Any, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[ReadOnce], tuple[Any]]:
        """A copy for another process has the rows alone."""
        return ReadOnce, (self.rows,)

    def known(self, what: Any, compute: Callable[[], Any]) -> Any:
        """What was computed under this name before, or is now."""
        if what not in self._known:
            self._known[what] = compute()
        return self._known[what]


@dataclass(frozen=True, init=False)
class Corpus(InNotebooks):
    """Files or a table, which of its columns are read, and how.

    `source` is a Parquet path, a glob, a list of them, or a folder (Hive partitions become
    columns); CSV or JSON lines; a table of a DuckDB file ("app.duckdb/reviews"); a DuckDB
    relation or a Spark frame, or the name of a table or view beside `connection=`; or anything that
    offers Arrow data: an Arrow table, a Polars or a pandas frame.

    `user=` names the column of users. With several columns, `["author", "month"]`, each combination
    of values is protected by itself; a person who is in several combinations is not.

    `text=` reads words by default, in lower case and without punctuation; `item=` takes each row
    whole; `as_=` chooses "words", "characters", "whole" or "list" (a list column, taken as is).
    For texts that are tokenised already, say `split="white space", lower=False`.

    Each row of a frame, a relation or a view must have been made from rows of its own user: dphh
    does not look at how they were made, and the privacy statement says so (docs/corpus.md).

    `where=` leaves rows out by a condition in SQL over one row, `since="day=2026-01-01"` those
    before, `until=("day", date(2026, 2, 1))` those from then on (docs/corpus.md, Which rows count).
    """

    _INTERNAL = "columns_of_user files_of_places listed local_files read_once same_schema"

    source: Any = field(compare=False)
    user: tuple[str, ...]
    content: Content
    #: The ledger's account that pays, where the corpus's files do not decide it.
    account: str | None
    kind: Literal["path", "table", "frame"]
    where: tuple[str, ...]
    #: The column whose values are the groups within which a run counts users.
    by: str | None
    #: The local files of each place as a run found them when it began, so that it reads those that
    #: the ledger was asked about; None: they are looked for.
    listed: Mapping[str, Sequence[str]] | None = field(default=None, compare=False)

    #: Whether its files were found to have one schema when they were opened.
    same_schema: bool = field(default=False, compare=False)

    #: Its rows in memory, if it is prepared.
    read_once: ReadOnce | None = field(default=None, compare=False)

    @checked_call
    def __init__(
        self,
        source: Any,
        *,
        user: str | Sequence[str],
        text: str | None = None,
        item: str | None = None,
        as_: ReadAs | None = None,
        lower: bool | None = None,
        split: str = "unicode",
        strip: str = "",
        keep: str | None = None,
        drop: str | None = None,
        max_token_length: int = MAX_TOKEN_LENGTH,
        too_long: TooLong = "truncate",
        unit: int | None = None,
        max_text_length: int = MAX_TEXT_LENGTH,
        account: str | None = None,
        where: str | None = None,
        since: Bound | None = None,
        until: Bound | None = None,
        null_users: NullUsers = "refuse",
        connection: Any = None,
    ) -> None:
        column = text if text is not None else item
        if column is None or (text is not None and item is not None):
            raise UsageError(
                "text, item: give exactly one of them, the name of the content column "
                "(text= reads words, item= takes each row whole)"
            )
        if account is not None and not isinstance(account, str):
            raise UsageError(
                f"account: found {account!r}, not a text; give an account's name, such as 'reviews'"
            )
        users = checked_user(user)
        if isinstance(column, str) and (column,) == users:
            raise UsageError(
                f"text, item: found {column!r}, the column of user ids; name the column of content "
                "(if ids are meant, give them a second column)"
            )
        kind, places, opened = located_source(source, connection)
        usual: ReadAs = "words" if text is not None else "whole"
        reading: ReadAs = as_ or ("list" if is_list_column(opened, column) else usual)
        content = Content(
            column=column,
            reading=reading,
            lower=reading == "words" if lower is None else lower,
            split="white space" if split == "whitespace" else split,
            strip=strip,
            keep=keep,
            drop=drop,
            max_token_length=max_token_length,
            too_long=too_long,
            unit=unit,
            max_text_length=max_text_length,
            where=combined_condition(where, since, until),
            null_users=null_users,
        )
        vars(self).update(
            source=opened,
            user=users,
            content=content,
            account=account,
            kind=kind,
            where=places,
            by=None,
        )

    def __repr__(self) -> str:
        """Says where the data is and how it is read. It shows no row."""
        where = repr(self.where[0] if len(self.where) == 1 else [*self.where])
        options = ", ".join(f"{option}={value!r}" for option, value in self._given().items())
        return f"Corpus({where if self.kind == 'path' else f'<{self.kind} {where}>'}, {options})"

    def _rows(self) -> list[tuple[str, str]]:
        given = self._given().items()
        return [(self.kind, ", ".join(self.where)), *((name, str(value)) for name, value in given)]

    def _given(self) -> dict[str, Any]:
        """The options that say how it is read, but for those with their defaults."""
        content = self.content
        said: dict[str, Any] = {
            "user": user_option(self.user),
            "item" if content.reading == "whole" else "text": content.column,
        }
        if content.reading not in ("words", "whole"):
            said["as_"] = content.reading
        usual = {name: option.default for name, option in CORPUS_OPTIONS.items()}
        usual["lower"] = content.reading == "words"
        said |= {
            option: value
            for option, value in content.to_json().items()
            if option in usual and value != usual[option]
        }
        if self.account is not None:
            said["account"] = self.account
        return said

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are read, each by the option that names it."""
        bounds = columns_of_bounds(self.content.where or "")
        named = {
            **dict(self.columns_of_user),
            "text or item": self.content.column,
            "by": self.by,
            **{
                f"{'since, until' if column in bounds else 'where'} ({column})": column
                for column in self.content.columns_of_where
            },
        }
        return {option: column for option, column in named.items() if column is not None}

    @property
    def columns_of_user(self) -> list[tuple[str, str]]:
        """The columns of user ids, each as (how errors name the option, the column)."""
        return [
            ("user" if place == 1 else f"user, column {place}", column)
            for place, column in enumerate(self.user, start=1)
        ]

    @property
    def local_files(self) -> list[str]:
        """The files of the corpus, but for those in a store; none of a table in memory. A file that
        several of its places name is there once."""
        return [*dict.fromkeys(file for files in self.files_of_places().values() for file in files)]

    def files_of_places(self) -> Mapping[str, Sequence[str]]:
        """The local files of each place of the corpus."""
        if self.kind != "path":
            return {}
        if self.listed is not None:
            return self.listed
        return {place: files_named(place) for place in self.where}

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": list(self.where),
            "account": self.account,
            "user": user_option(self.user),
            "content": self.content.to_json(),
            **({} if self.by is None else {"by": self.by}),
        }


#: Each option of `Corpus` by name: its type and default, as an `inspect.Parameter`.
CORPUS_OPTIONS = signature(Corpus, eval_str=True).parameters


def checked_user(user: str | Sequence[str]) -> tuple[str, ...]:
    """Check the option `user`; returns the user columns."""
    columns = [user] if isinstance(user, str) else user
    of_texts = isinstance(columns, (list, tuple)) and all(
        isinstance(column, str) and column for column in columns
    )
    if not of_texts or not columns or len({*columns}) < len(columns):
        found = repr(user) if of_texts else shown(user)
        raise UsageError(
            f"user: found {found}; name the column of user ids, or several different columns that "
            "identify a user together"
        )
    return tuple(columns)


def user_option(user: tuple[str, ...]) -> str | list[str]:
    """The user columns as the option `user` takes them: one as a text, several as a list."""
    return user[0] if len(user) == 1 else list(user)


def unit_in_words(user: tuple[str, ...]) -> str:
    """The protected unit, for privacy statements: each user, or each combination of columns."""
    if len(user) == 1:
        return "each user"
    columns = " and ".join(user)
    return f"each combination of {columns}; less to a person, who may have many of them"


def unit_and_columns(user: tuple[str, ...]) -> str:
    """The protected unit with the names of all its columns, for what accounts say."""
    if len(user) == 1:
        return f"users by the column {user[0]!r}"
    return f"combinations of the columns {', '.join(map(repr, user))}"


def as_recorded(corpus: Corpus) -> dict[str, Any]:
    """What a ledger records of a corpus: where it is and how it is read."""
    said = corpus.to_json()
    return {name: said[name] for name in ("kind", "where", "user", "content")}


def corpus_from_json(recorded: dict[str, Any], account: str | None = None) -> Corpus:
    """The corpus that `as_recorded` or `to_json` describes; for a table, without the table."""
    corpus = object.__new__(Corpus)
    vars(corpus).update(
        source=None,
        user=checked_user(recorded["user"]),
        content=Content(**recorded["content"]),
        account=account,
        kind=recorded["kind"],
        where=tuple(recorded["where"]),
        by=recorded.get("by"),
    )
    return corpus


def replace_corpus(corpus: Corpus, **changes: Any) -> Corpus:
    """The corpus with these fields changed. (`dataclasses.replace` would call its `__init__`.)"""
    changed = copy(corpus)
    vars(changed).update(changes)
    return changed


def narrowed(
    corpus: Corpus,
    where: str | None = None,
    since: Bound | None = None,
    until: Bound | None = None,
) -> Corpus:
    """The same corpus, of which a row counts only if it meets these conditions too."""
    kept = joined_by_and(corpus.content.where, combined_condition(where, since, until))
    return replace_corpus(corpus, content=replace(corpus.content, where=kept))


def as_sequences(corpus: Corpus, unit: int) -> Corpus:
    """The corpus as tries read it: a whole item is cut into tokens of `unit` characters. A corpus
    that is read as words, characters or lists stays as it is."""
    if corpus.content.reading == "whole":
        if corpus.content.unit not in (None, unit):
            raise UsageError(
                f"unit: found {corpus.content.unit} in the corpus and {unit} in the verb; give it "
                "to the verb only"
            )
        return replace_corpus(corpus, content=replace(corpus.content, unit=unit))
    if unit != 1:
        raise UsageError(
            f"unit: cuts whole items into pieces of {unit} characters, but this corpus is read as "
            f"{corpus.content.reading}, which are already sequences; leave unit out, or use item="
        )
    return corpus

"""A corpus: where the data is and what it means. Making one reads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from dphh.errors import CorpusError, UsageError
from dphh.unit import User, as_json, checked_user, columns_of
from dphh.wording.asked import named_in_words

Reading = Literal["words", "characters", "whole", "list"]
TooLong = Literal["truncate", "drop", "error"]
#: What one character is, where content is read by character or cut into units.
Characters = Literal["code points", "graphemes", "bytes"]

#: A token longer than this many characters is truncated unless the owner says otherwise.
MAX_TOKEN_LENGTH = 1000

#: Of one text so many characters count, of a list so many tokens, unless the owner says otherwise.
MAX_TEXT_LENGTH = 1 << 24
#: No engine cuts texts further on than this.
_FURTHEST = (1 << 31) - 1

#: `split=` takes one of these names, or a regular expression whose matches are the words.
SPLITS = ("white space", "unicode")

#: The words that the TrieHH papers keep of a tweet; pass as `Corpus(..., **TRIEHH_WORDS)`.
TRIEHH_WORDS: dict[str, Any] = {
    "lower": True,
    "strip": ",.;?!",
    "keep": r"[a-z_@#\-;()*:.'/]{3,}",
    "drop": r"(?:http|www).*|.*[?!.;,]",
}

#: Tables that know more than their rows: what to give in their place.
_TABLES = {
    "deltalake": "give the table's folder, which is read as its log has it now",
    "pyiceberg": "give the table's folder, or table.scan().to_arrow() and name=",
}

#: What each option of a corpus says, for whoever offers it.
HELP = {
    "user": "The column that says whose row it is; given twice or more, the columns that do.",
    "text": "The content column, read as words.",
    "item": "The content column, each row taken whole.",
    "as_": "How the content becomes tokens, if not as --text or --item say.",
    "lower": "Lower case first.",
    "split": "Words: 'white space', 'unicode', or a regular expression that matches a word.",
    "strip": "Strip these from both ends.",
    "keep": "Keep only tokens that match it as a whole.",
    "drop": "Drop tokens that match it as a whole.",
    "max_text_length": "Of one text so many characters count, of a list so many tokens.",
    "max_token_length": "Characters of the longest token.",
    "too_long": "What to do with longer ones.",
    "characters": "What a character is, for --as characters and for trie.",
}


_TEXT_OR_NONE = (str, type(None))
_OF_TYPE: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("column", str, "the name of one column"),
    ("lower", bool, "True or False"),
    ("strip", str, "the characters to strip, as one text"),
    ("keep", _TEXT_OR_NONE, "a regular expression"),
    ("drop", _TEXT_OR_NONE, "a regular expression"),
)
_ASKED = {"column": "text or item"}


@dataclass(frozen=True)
class Content:
    """How one row's content becomes a sequence of tokens; a function of that row alone.

    In this order: decode, limit the text's length, lower, split, strip, keep, drop, limit the
    tokens' length, leave out the empty.
    """

    column: str
    reading: Reading = "words"
    lower: bool = False
    split: str = "white space"
    strip: str = ""
    keep: str | None = None
    drop: str | None = None
    max_token_length: int = MAX_TOKEN_LENGTH
    too_long: TooLong = "truncate"
    #: A whole item, once cleaned, is cut into tokens of so many characters (for `trie`).
    unit: int | None = None
    characters: Characters = "code points"
    #: One text is one value to an engine, which holds it and its tokens whole.
    max_text_length: int = MAX_TEXT_LENGTH

    def __post_init__(self) -> None:
        for option, kind, what in _OF_TYPE:
            if not isinstance(value := getattr(self, option), kind):
                raise UsageError(f"{_ASKED.get(option, option)}: found {value!r}; give {what}")
        if self.reading not in get_args(Reading):
            raise UsageError(
                f"as_: found {self.reading!r}; say one of {', '.join(get_args(Reading))}"
            )
        if self.too_long not in get_args(TooLong):
            raise UsageError(
                f"too_long: found {self.too_long!r}; say one of {', '.join(get_args(TooLong))}"
            )
        for option in ("max_text_length", "max_token_length"):
            length = getattr(self, option)
            whole = isinstance(length, int) and not isinstance(length, bool)
            if not whole or not 1 <= length <= _FURTHEST:
                raise UsageError(
                    f"{option}: found {length!r}; give a number of characters, 1 to {_FURTHEST:,}"
                )
        if not isinstance(self.split, str) or not self.split:
            raise UsageError(f"split: found {self.split!r}; say {SPLITS} or a regular expression")
        if self.reading != "words" and self.split != "white space":
            raise UsageError(
                f"split: goes with as='words', found as={self.reading!r}; leave split out"
            )

        self._check_characters()
        if self.unit is None:
            return
        if isinstance(self.unit, bool) or not isinstance(self.unit, int) or self.unit < 1:
            raise UsageError(f"unit: found {self.unit!r}; give a number of characters from 1")
        if self.reading != "whole":
            raise UsageError(f"unit: cuts whole items, found as={self.reading!r}; leave unit out")

    def _check_characters(self) -> None:
        if self.characters not in get_args(Characters):
            raise UsageError(
                f"characters: found {self.characters!r}; say one of "
                f"{', '.join(get_args(Characters))}"
            )
        if self.characters == "code points":
            return
        if self.reading not in ("characters", "whole"):
            raise UsageError(
                f"characters: goes with as='characters' or with whole items, found "
                f"as={self.reading!r}; leave characters out"
            )
        if self.characters == "bytes" and self.reading == "characters" and self.cleans_tokens:
            raise UsageError(
                "characters: 'bytes' are cleaned by nothing that looks at characters; leave strip, "
                "keep and drop out, or read whole items (item=), which are cleaned before they "
                "are cut"
            )

    @property
    def cleans_tokens(self) -> bool:
        return bool(self.strip) or self.keep is not None or self.drop is not None

    @property
    def joiner(self) -> str:
        """What stands between the tokens of an item."""
        return "" if self.reading == "characters" or self.unit is not None else " "

    @property
    def tokens_are_bytes(self) -> bool:
        """Whether tokens are spelled in hexadecimal digits, two a byte."""
        cut = self.reading == "characters" or self.unit is not None
        return cut and self.characters == "bytes"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, init=False)
class Corpus:
    """Files, or a table that is already in memory, and the columns that matter.

    `source` is a Parquet path, a glob, a list of them, or a folder (Hive partitions become
    columns); CSV or JSON lines; a table of a DuckDB file ("app.duckdb/reviews"); the folder of a
    Delta or an Iceberg table (docs/sources.md); or a DuckDB relation or a Spark frame, or the name
    of a table or view beside `connection=`; or anything that offers Arrow data: an Arrow table, a
    Polars or a pandas frame.

    `user=` names the column of users. Of several columns, `["author", "month"]`, each combination
    of values is protected by itself: a person who is in many of them is not.

    `text=` reads words by default, `item=` takes each row whole; `as_=` chooses
    "words", "characters", "whole" or "list" (a list column, taken as is). `characters=` says what
    a character is: "code points", "graphemes" (clusters) or "bytes".
    """

    source: Any = field(compare=False)
    user: User
    content: Content
    name: str | None
    kind: Literal["path", "table", "frame"]
    where: tuple[str, ...]
    #: The column of the groups that `counts` counts within.
    by: str | None

    @named_in_words
    def __init__(
        self,
        source: Any,
        *,
        user: str | Sequence[str],
        text: str | None = None,
        item: str | None = None,
        as_: Reading | None = None,
        lower: bool = False,
        split: str = "white space",
        strip: str = "",
        keep: str | None = None,
        drop: str | None = None,
        max_token_length: int = MAX_TOKEN_LENGTH,
        too_long: TooLong = "truncate",
        unit: int | None = None,
        characters: Characters = "code points",
        max_text_length: int = MAX_TEXT_LENGTH,
        name: str | None = None,
        connection: Any = None,
    ) -> None:
        column = text if text is not None else item
        if column is None or (text is not None and item is not None):
            raise UsageError(
                "text, item: name the content column with exactly one of them "
                "(text= reads words, item= takes each row whole)"
            )
        if name is not None and not isinstance(name, str):
            raise UsageError(f"name: found {name!r}; give the name of an account of the ledger")
        kind, where, opened = _locate(source, connection)
        content = Content(
            column=column,
            reading=as_ or ("words" if text is not None else "whole"),
            lower=lower,
            split=split,
            strip=strip,
            keep=keep,
            drop=drop,
            max_token_length=max_token_length,
            too_long=too_long,
            unit=unit,
            characters=characters,
            max_text_length=max_text_length,
        )
        for key, value in {
            "source": opened,
            "user": checked_user(user),
            "content": content,
            "name": name,
            "kind": kind,
            "where": where,
            "by": None,
        }.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        """Where the data is and what it means; never a row of it."""
        where = repr(self.where[0] if len(self.where) == 1 else [*self.where])
        content = self.content
        said: dict[str, Any] = {
            "user": as_json(self.user),
            "item" if content.reading == "whole" else "text": content.column,
        }
        if content.reading not in ("words", "whole"):
            said["as_"] = content.reading
        given = content.to_json()
        said |= {
            each.name: given[each.name]
            for each in fields(Content)
            if each.name not in ("column", "reading") and given[each.name] != each.default
        }
        if self.name is not None:
            said["name"] = self.name
        options = ", ".join(f"{option}={value!r}" for option, value in said.items())
        return f"Corpus({where if self.kind == 'path' else f'<{self.kind} {where}>'}, {options})"

    @property
    def columns(self) -> dict[str, str]:
        """The columns that matter, by the options that name them."""
        named = {**dict(self.columns_of_user), "text or item": self.content.column, "by": self.by}
        return {option: column for option, column in named.items() if column is not None}

    @property
    def columns_of_user(self) -> list[tuple[str, str]]:
        """The column of users, or the columns that say together whose row it is; each with what to
        call it where it is wrong."""
        return [
            ("user" if place == 1 else f"user, column {place}", column)
            for place, column in enumerate(columns_of(self.user), start=1)
        ]

    def named(self, name: str) -> Corpus:
        """The same corpus, charged to the ledger's account of that name."""
        return replace_corpus(self, name=name)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "where": list(self.where),
            "name": self.name,
            "user": as_json(self.user),
            "content": self.content.to_json(),
            **({} if self.by is None else {"by": self.by}),
        }


def corpus_from_json(found: dict[str, Any], name: str | None = None) -> Corpus:
    content = dict(found["content"])
    reading = content.pop("reading")
    column = content.pop("column")
    corpus = Corpus(
        list(found["where"]), user=found["user"], text=column, as_=reading, name=name, **content
    )
    return in_groups(corpus, found.get("by"))


def replace_corpus(corpus: Corpus, **changes: Any) -> Corpus:
    """`dataclasses.replace` for a class with its own `__init__`."""
    copy = object.__new__(Corpus)
    for key in ("source", "user", "content", "name", "kind", "where", "by"):
        object.__setattr__(copy, key, changes.get(key, getattr(corpus, key)))
    return copy


def in_groups(corpus: Corpus, by: str | None) -> Corpus:
    """For `counts`: rows belong to the groups that this column names."""
    return replace_corpus(corpus, by=by)


def of_people(corpus: Corpus) -> Corpus:
    """For counts, of whichever verb: what they say is a number of people."""
    if not isinstance(corpus.user, str):
        raise UsageError(
            f"user: found the columns {', '.join(corpus.user)}; counts says how many users hold an "
            "item, and combinations of columns are no people: name the one column of users"
        )
    return corpus


def as_sequences(corpus: Corpus, unit: int) -> Corpus:
    """For `trie`: whole items become sequences of characters; all else is a sequence already."""
    if corpus.content.reading == "whole":
        if corpus.content.unit not in (None, unit):
            raise UsageError(
                f"unit: the corpus says {corpus.content.unit} and the verb {unit}; say it to the "
                "verb alone"
            )
        return replace_corpus(corpus, content=replace(corpus.content, unit=unit))
    if unit != 1:
        raise UsageError(
            f"unit: cuts whole items into runs of {unit} characters, but this corpus is read as "
            f"{corpus.content.reading}, which are sequences already; leave unit out, or use item="
        )
    return corpus


def _locate(
    source: Any, connection: Any
) -> tuple[Literal["path", "table", "frame"], tuple[str, ...], Any]:
    """What kind of source this is, where the ledger will say it lives, and how to open it."""
    if connection is not None:
        if not isinstance(source, str):
            raise UsageError(
                "connection: goes with the name of a table or view; "
                f"found a source of type {type(source).__name__}"
            )
        home = type(connection).__module__.split(".")[0].lstrip("_").removeprefix("py")
        if home not in ("duckdb", "spark"):
            raise UsageError(
                f"connection: found a {type(connection).__name__}; give the DuckDB connection or "
                "the Spark session that knows the table"
            )
        return "table", (f"{home}:{source}",), _table(connection, source)
    if isinstance(source, (str, Path)):
        return "path", (absolute(source),), None
    if isinstance(source, (list, tuple)):
        if not source or not all(isinstance(path, (str, Path)) for path in source):
            raise UsageError("source: a list must hold Parquet paths or globs, at least one")
        return "path", tuple(absolute(path) for path in source), None
    module = type(source).__module__.split(".")[0].lstrip("_")
    label = f"{module}:{type(source).__name__}"
    if module in ("duckdb", "polars", "pyspark") or hasattr(source, "__arrow_c_stream__"):
        return ("table" if module == "duckdb" else "frame"), (label,), source
    if module in _TABLES:
        raise UsageError(f"source: found a {type(source).__name__}; {_TABLES[module]}")
    raise UsageError(
        f"source: found a {type(source).__name__}; give a Parquet path, glob, list or folder, "
        "a DuckDB relation (or a table's name and connection=), an Arrow table, a Polars, a "
        "pandas or a Spark frame"
    )


def _table(connection: Any, name: str) -> Any:
    try:
        return connection.table(name)
    except Exception as problem:
        if type(problem).__module__.split(".")[0].lstrip("_") not in ("duckdb", "pyspark"):
            raise
        raise CorpusError(
            f"source: the connection has no table or view {name!r} ({type(problem).__name__}); "
            "give its name as in SQL, such as reviews or archive.reviews"
        ) from None


def absolute(path: str | Path) -> str:
    """A path or glob made absolute without touching the disk; remote URLs stay as they are."""
    text = str(path)
    if not text or "\0" in text:
        raise UsageError(f"source: found the path {text!r}; give a Parquet path, glob or folder")
    if "://" in text:
        return text
    try:
        return str(Path(text).expanduser().absolute())
    except RuntimeError:
        raise UsageError(
            f"source: found {text!r}, but there is no such user's home folder; write the path out"
        ) from None

"""The options that say which rows count and how a row's content becomes tokens; reads no data."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from dphh.errors import UsageError
from dphh.reader.conditions import checked_condition
from dphh.wording.options import check_choice, check_whole, shown

#: What the tokens of a content are: the option `as_`.
ReadAs = Literal["words", "characters", "whole", "list"]
#: What is done with tokens that are too long.
TooLong = Literal["truncate", "drop", "error"]
#: What is done with rows that have a NULL in a user column.
NullUsers = Literal["refuse", "drop"]

#: The default of `max_token_length`, in characters: longer tokens are truncated.
MAX_TOKEN_LENGTH = 1000
#: The default of `max_text_length`: so many characters of one text count, or tokens of one list.
MAX_TEXT_LENGTH = 100_000
#: The largest value of `max_token_length` and `max_text_length` that all engines can apply.
_LARGEST_LIMIT = (1 << 31) - 1

#: `split=` takes one of these names, or a regular expression whose matches are the words.
SPLITS = ("unicode", "white space")
#: Matches a regular expression that is a word: whoever gives it means the name of a way to split.
_WORD_AS_PATTERN = re.compile(r"[A-Za-z _-]+")

#: Which words of a tweet the TrieHH papers keep; pass as `Corpus(..., **TRIEHH_WORDS)`.
TRIEHH_WORDS: dict[str, Any] = {
    "lower": True,
    "split": "white space",
    "strip": ",.;?!",
    "keep": r"[a-z_@#\-;()*:.'/]{3,}",
    "drop": r"(?:http|www).*|.*[?!.;,]",
}

#: What stands between the elements of a list as people see them, and where a text gives them.
BORDER = " → "

# Messages of errors that every engine raises in the same words.
TOKEN_TOO_LONG_MESSAGE = (
    "max_token_length: the corpus has a longer token; raise max_token_length, or pass "
    "too_long='truncate' or 'drop'"
)
NOT_UTF8_MESSAGE = (
    "text, user: a text column has bytes that are not UTF-8: write it as a binary column "
    "(whose undecodable values are ignored), or repair it"
)
GROUP_TYPE_MESSAGE = (
    "by: {column!r} is {kind}, which groups cannot have; name a column of "
    "texts, whole numbers, dates or booleans, or cast it to text"
)


@dataclass(frozen=True)
class Content:
    """How one row's content becomes a sequence of tokens; a function of that row alone.

    The steps, in order: decode, limit the text's length, compose (NFC), lower and compose, split,
    strip, keep, drop, limit the tokens' length, remove empty tokens.
    """

    column: str
    reading: ReadAs
    lower: bool
    split: str
    strip: str
    keep: str | None
    drop: str | None
    max_token_length: int
    too_long: TooLong
    #: For `trie`: a whole item is cleaned, then cut into tokens of this many characters.
    unit: int | None
    #: A limit is needed because an engine keeps a text and all its tokens in memory as one value.
    max_text_length: int
    null_users: NullUsers
    #: Which rows count: a condition in SQL over one row (below); None: all. It has a
    #: default, as every field below must: ledgers hold contents that were written without it.
    where: str | None = None

    def __post_init__(self) -> None:
        value: object
        for option, value, kind, what in (
            ("text or item", self.column, str, "the name of one column"),
            ("lower", self.lower, bool, "True or False"),
            ("strip", self.strip, str, "the characters to strip, as one text"),
            ("keep", self.keep, str | None, "a regular expression"),
            ("drop", self.drop, str | None, "a regular expression"),
        ):
            if not isinstance(value, kind):
                raise UsageError(f"{option}: found {shown(value)}; give {what}")
        check_choice("as_", self.reading, get_args(ReadAs))
        check_choice("too_long", self.too_long, get_args(TooLong))
        check_choice("null_users", self.null_users, get_args(NullUsers))
        check_whole("max_text_length", self.max_text_length, most=_LARGEST_LIMIT)
        check_whole("max_token_length", self.max_token_length, most=_LARGEST_LIMIT)
        if (
            not isinstance(self.split, str)
            or not self.split
            or (self.split not in SPLITS and _WORD_AS_PATTERN.fullmatch(self.split))
        ):
            raise UsageError(
                f"split: found {self.split!r}; give {', '.join(SPLITS)} or a regular expression "
                "whose matches are the words, such as '[a-z]+'"
            )
        if self.reading != "words" and self.split != SPLITS[0]:
            raise UsageError(
                f"split: works only with as_='words', and as_ is {self.reading!r}; leave split out"
            )
        if self.unit is None:
            return
        check_whole("unit", self.unit)
        if self.reading != "whole":
            raise UsageError(
                f"unit: cuts whole items (item=) into tokens of so many characters; found "
                f"as_={self.reading!r}, so leave unit out"
            )

    @property
    def patterns(self) -> dict[str, str]:
        """The regular expressions that the caller gave, by option."""
        split = None if self.split in SPLITS else self.split
        given = {"keep": self.keep, "drop": self.drop, "split": split}
        return {option: pattern for option, pattern in given.items() if pattern is not None}

    @property
    def joiner(self) -> str:
        """The text between the tokens of an item: a space, or nothing between characters."""
        return "" if self.reading == "characters" or self.unit is not None else " "

    @property
    def limits_in_words(self) -> str:
        """How much of long texts and tokens counts, in words."""
        what = "tokens of a list" if self.reading == "list" else "characters of a text"
        longer = {"truncate": "cut", "drop": "left out", "error": "refused"}[self.too_long]
        return (
            f"the first {self.max_text_length:,} {what} count; tokens of more than "
            f"{self.max_token_length:,} characters are {longer}"
        )

    @property
    def columns_of_where(self) -> tuple[str, ...]:
        return () if self.where is None else checked_condition(self.where).columns

    def to_json(self) -> dict[str, Any]:
        """As JSON; without `where` if all rows count."""
        found = asdict(self)
        return {name: value for name, value in found.items() if (name, value) != ("where", None)}

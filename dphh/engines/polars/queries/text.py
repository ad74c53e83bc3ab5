"""`sql/rows/text.sql`: how a row's content becomes tokens. Each function works row by row."""

from __future__ import annotations

import polars as pl

from dphh.rows.patterns import branches_apart

#: Unicode's White_Space characters, except the space itself.
OTHER_WHITE_SPACE = (
    r"[\x09-\x0d\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
#: Runs of letters, marks, digits and underscores, with apostrophes inside them.
UNICODE_WORD = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*(?:['’][\p{L}\p{M}\p{N}_]+)*"
#: The error raised if a token is longer than the owner allows.
REFUSED = "dphh: too long"


def first_characters(text: pl.Expr, longest: int) -> pl.Expr:
    """The first `longest` characters. Most batches have no longer text, so lengths come first."""

    def cut(texts: pl.Series) -> pl.Series:
        return texts.str.head(longest) if (texts.str.len_bytes() > longest).any() else texts

    return text.map_batches(cut, return_dtype=pl.String, is_elementwise=True)


def first_tokens(tokens: pl.Expr, kind: pl.List, longest: int) -> pl.Expr:
    """The first `longest` tokens of each list."""

    def cut(lists: pl.Series) -> pl.Series:
        return lists.list.head(longest) if (lists.list.len() > longest).any() else lists

    return tokens.map_batches(cut, return_dtype=kind, is_elementwise=True)


def lowered(text: pl.Expr) -> pl.Expr:
    """Lower case per character, as in DuckDB: Polars would lower Σ depending on its position, and İ
    to two characters."""
    return text.str.replace_many(["Σ", "İ"], ["σ", "i"]).str.to_lowercase()


def white_space_words(content: pl.Expr) -> pl.Expr:
    plain = content.map_batches(_with_plain_spaces, return_dtype=pl.String, is_elementwise=True)
    return plain.str.split(" ")


def _with_plain_spaces(content: pl.Series) -> pl.Series:
    """Replace other white space by spaces. Most batches are ASCII without it; finding that out
    takes a tenth of the time of replacing."""
    is_ascii = content.str.len_bytes() == content.str.len_chars()
    if is_ascii.all() and not content.str.contains(r"[\x09-\x0d]").any():
        return content
    return content.str.replace_all(OTHER_WHITE_SPACE, " ")


def unicode_words(content: pl.Expr) -> pl.Expr:
    return content.str.extract_all(UNICODE_WORD)


def pattern_words(content: pl.Expr, pattern: str) -> pl.Expr:
    return content.str.extract_all(branches_apart(pattern))


def code_points(content: pl.Expr) -> pl.Expr:
    return content.str.split("")


def cut_code_points(item: pl.Expr, size: int) -> pl.Expr:
    """A whole item, cut into runs of `size` characters; the last may be shorter."""
    text = item.list.first()
    return code_points(text) if size == 1 else text.str.extract_all(f"(?s).{{1,{size}}}")


def decoded(text: pl.Expr) -> pl.Expr:
    """Binary content as text; what is not UTF-8 becomes NULL, which no level counts."""
    return text.map_batches(_utf8_or_null, return_dtype=pl.String, is_elementwise=True)


def decoded_tokens(tokens: pl.Expr) -> pl.Expr:
    return tokens.list.eval(decoded(pl.element()))


def stripped(tokens: pl.Expr, characters: str) -> pl.Expr:
    return tokens.list.eval(pl.element().str.strip_chars(characters))


def keeping(tokens: pl.Expr, pattern: str) -> pl.Expr:
    return tokens.list.eval(pl.element().filter(full_match(pl.element(), pattern)))


def dropping(tokens: pl.Expr, pattern: str) -> pl.Expr:
    return tokens.list.eval(pl.element().filter(~full_match(pl.element(), pattern)))


def full_match(token: pl.Expr, pattern: str) -> pl.Expr:
    return token.str.contains(in_full(pattern))


def in_full(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def truncating(tokens: pl.Expr, longest: int) -> pl.Expr:
    return tokens.list.eval(pl.element().str.head(longest))


def dropping_long(tokens: pl.Expr, longest: int) -> pl.Expr:
    return tokens.list.eval(pl.element().filter(pl.element().str.len_chars() <= longest))


def refusing_long(tokens: pl.Expr, longest: int) -> pl.Expr:
    def refuse(found: pl.Series) -> pl.Series:
        if (found.str.len_chars() > longest).any():
            raise ValueError(REFUSED)
        return found

    checked = pl.element().map_batches(refuse, return_dtype=pl.String, is_elementwise=True)
    return tokens.list.eval(checked)


def _utf8_or_null(content: pl.Series) -> pl.Series:
    try:
        return content.cast(pl.String)
    except pl.exceptions.ComputeError:  # some row is not UTF-8: decode one by one
        return pl.Series(content.name, [_text_or_none(row) for row in content], pl.String)


def _text_or_none(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None

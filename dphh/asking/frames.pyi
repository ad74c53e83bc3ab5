# Made from the registry of verbs: make generated
import collections.abc
import datetime
import pathlib
import typing

import polars as pl

import dphh.mechanisms.counts.price
from dphh.plan import Plan
from dphh.reader.corpus import Corpus

_Frame = pl.DataFrame | pl.LazyFrame

class _Rows(typing.TypedDict, total=False):
    user: typing.Required[str | pl.Expr | collections.abc.Sequence[str | pl.Expr]]
    text: str | None | pl.Expr
    item: str | None | pl.Expr
    as_: typing.Optional[typing.Literal['words', 'characters', 'whole', 'list']]
    lower: bool | None
    split: str
    strip: str
    drop: str | None
    max_token_length: int
    too_long: typing.Literal['truncate', 'drop', 'error']
    max_text_length: int
    account: str | None
    where: str | None | pl.Expr
    since: str | tuple[str, datetime.date | str] | None
    until: str | tuple[str, datetime.date | str] | None
    null_users: typing.Literal['refuse', 'drop']

class _Corpus(_Rows, total=False):
    keep: str | None

def frame(frame: _Frame) -> FrameVerbs:
    """`frame.dphh`, for those who check types: `dphh.frame(messages).ngrams(user=..., ...)`."""

class FrameVerbs:
    """The verbs of dphh on this frame. Each prices a run for free; `plan.run()` spends.

    The options are those of `dphh.Corpus` and of the verb; what names a column or chooses rows may
    be an expression over one row: `text=pl.col("body").str.to_lowercase()`,
    `where=pl.col("lang") == "en"`. Releases say it by its alias, or as Polars writes it.
    `frame.dphh.corpus(...)` is the corpus, for `dphh.check`, `compare` and `evaluate`. `keep` is
    the verb's own in `ldp_trie`; to filter tokens there, clean the frame.
    """

    def __init__(self, frame: _Frame) -> None: ...
    def corpus(
        self,
        **corpus: typing.Unpack[_Corpus],
    ) -> Corpus:
        """The frame as a corpus, for `dphh.check`, `compare`, `evaluate` and the ledger.

        dphh.check(frame.dphh.corpus(user="author", text="body"))

        user: The column of user ids, or several in combination.
        text: The column of texts, which are split into words.
        item: The column of items, each row one whole item.
        as_: Read content as words, characters, whole or list.
        where: Only rows that meet this, as "country = 'DE'".
        since: Only rows from this value on, as day=2026-01-01.
        until: Only rows before this value, as day=2026-02-01.
        lower: Change to lower case; the default for words.
        split: Words: unicode, white space, or a pattern they match.
        strip: Characters to strip from both ends of tokens.
        keep: Keep only tokens that match this in full.
        drop: Drop tokens that match this in full.
        max_token_length: The most characters of a token.
        too_long: Longer tokens: truncate, drop or error.
        max_text_length: The most characters that are read of a text.
        null_users: Rows with a NULL user id: refuse or drop.
        """
    def items(
        self,
        *,
        epsilon: float,
        delta: float,
        max_items: int = 100,
        method: typing.Literal['auto', 'gaussian', 'sips', 'adaptive', 'single'] = 'auto',
        prior: str | pathlib.Path | object | None = None,
        prior_text: str | None = None,
        prior_is_public: bool = False,
        domain: str | pathlib.Path | dphh.mechanisms.counts.price.ReleaseLike | collections.abc.Sequence[str | collections.abc.Sequence[str]] | None = None,
        counts: float | None = None,
        by: str | None | pl.Expr = None,
        groups: str | collections.abc.Sequence[str] = (),
        min_users: int | None = None,
        shares: collections.abc.Sequence[float] | None = None,
        sigma: float | None = None,
        threshold: float | None = None,
        **corpus: typing.Unpack[_Corpus],
    ) -> Plan:
        """Single items that many users hold.

            frame.dphh.items(user="author", item="dish", epsilon=1.0, delta=1e-7)

        max_items: The most items that a user counts for.
        method: auto, gaussian, sips, adaptive or single.
        prior: A public text, table or release to start from.
        prior_text: If the prior is raw text: its column of texts.
        prior_is_public: Declare that the prior's text or table is public.
        domain: All items to look at: a file, or a release.
        counts: Share of the budget for counting users; 0: a score only.
        by: Count users within the groups of this column.
        groups: Names of groups, with commas; the rest is 'other'.
        min_users: Leave out items that may have fewer users.
        epsilon: The privacy budget: 1 is strict, 8 is weak.
        delta: Probability on top of epsilon: well below 1 / users.
        shares: For sips: each round's share of the budget.
        sigma: For gaussian: the noise, in users.
        threshold: For gaussian: the threshold, in users.
        """
    def ngrams(
        self,
        *,
        max_n: int,
        epsilon: float,
        delta: float,
        max_items: int = 100,
        method: typing.Literal['forecast', 'dpne'] = 'forecast',
        prior: str | pathlib.Path | object | None = None,
        prior_text: str | None = None,
        prior_is_public: bool = False,
        counts: float | None = None,
        by: str | None | pl.Expr = None,
        groups: str | collections.abc.Sequence[str] = (),
        min_users: int | None = None,
        spurious: float = 0.01,
        shares: collections.abc.Sequence[float] | None = None,
        sigma: collections.abc.Sequence[float] | None = None,
        threshold: float | None = None,
        **corpus: typing.Unpack[_Corpus],
    ) -> Plan:
        """Runs of up to `max_n` tokens that many users hold.

            frame.dphh.ngrams(user="author", text="body", max_n=3, epsilon=1.0, delta=1e-7)

        max_n: The longest n-gram, in tokens.
        max_items: The most words that a user counts for.
        method: forecast, or the paper's dpne.
        prior: A public text, table or release to start from.
        prior_text: If the prior is raw text: its column of texts.
        prior_is_public: Declare that the prior's text or table is public.
        counts: Share of the budget for counting users; 0: a score only.
        by: Count users within the groups of this column.
        groups: Names of groups, with commas; the rest is 'other'.
        min_users: Leave out items that may have fewer users.
        epsilon: The privacy budget: 1 is strict, 8 is weak.
        delta: Probability on top of epsilon: well below 1 / users.
        spurious: The share of finds that may be held by no user.
        shares: For dpne: each length's share of the budget.
        sigma: For dpne: each length's noise, in users.
        threshold: For dpne: the threshold of words, in users.
        """
    def trie(
        self,
        *,
        max_length: int,
        epsilon: float,
        delta: float,
        unit: int = 1,
        choice: typing.Literal['drawn', 'most-frequent'] = 'drawn',
        counts: float | None = None,
        by: str | None | pl.Expr = None,
        groups: str | collections.abc.Sequence[str] = (),
        max_items: int | None = None,
        theta: int | None = None,
        p: float | None = None,
        **corpus: typing.Unpack[_Corpus],
    ) -> Plan:
        """Sequences, grown level by level from sampled votes.

            frame.dphh.trie(user="author", item="query", max_length=12, epsilon=1.0, delta=1e-8)

        max_length: Most tokens of a sequence, its end as one of them.
        unit: For whole items: characters in a token.
        choice: Which sequence votes: drawn at random, or most-frequent.
        counts: Share of the budget for counting users; else none.
        by: Count users within the groups of this column.
        groups: Names of groups, with commas; the rest is 'other'.
        max_items: With counts: items a user fully counts in. [10]
        epsilon: The privacy budget: 1 is strict, 8 is weak.
        delta: Probability on top of epsilon: well below 1 / users.
        theta: Votes that a prefix needs; goes with p.
        p: Chance of a vote at a level; goes with theta.
        """
    def ldp_trie(
        self,
        *,
        keep: int,
        max_length: int,
        delta: float,
        users_per_level: int,
        contributions: int,
        sampling: typing.Literal['random', 'greedy'] = 'random',
        passes: int = 1,
        character_set: str | collections.abc.Sequence[str] = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~ \t\n\r\x0b\x0c',
        known: str | pathlib.Path | collections.abc.Sequence[str | collections.abc.Sequence[str]] = (),
        local_epsilon: float | None = None,
        central_epsilon: float | None = None,
        user_epsilon: float | None = None,
        pad: bool = False,
        **corpus: typing.Unpack[_Rows],
    ) -> Plan:
        """Sequences, grown level by level from locally randomised votes.

            frame.dphh.ldp_trie(user="author", item="query", max_length=8, keep=100,
            users_per_level=100_000, contributions=1, local_epsilon=4.0, delta=1e-8)

        max_length: Levels, and characters of a sequence.
        keep: The most prefixes that a level keeps.
        sampling: Which prefixes a user reports: random or greedy.
        passes: How many tries grow, each with words not found yet.
        character_set: All characters; a word with another is left out.
        known: Words not to ask for: a file, one a line.
        local_epsilon: Epsilon of one report, against its receiver.
        central_epsilon: Or: epsilon of one report, against who sees only sums.
        user_epsilon: Or: epsilon of a user, against who sees only sums.
        delta: The delta, against who sees only sums.
        users_per_level: Users asked at a level, each once.
        contributions: Reports that each user sends.
        pad: If there are too few users, add made-up ones.
        """
    def counts(
        self,
        *,
        of: str | pathlib.Path | dphh.mechanisms.counts.price.ReleaseLike | collections.abc.Sequence[str | collections.abc.Sequence[str]],
        epsilon: float,
        delta: float,
        max_held: int | None = None,
        top: int | None = None,
        min_length: int = 1,
        by: str | None | pl.Expr = None,
        groups: str | collections.abc.Sequence[str] = (),
        confidence: float = 0.95,
        simultaneous: bool = False,
        **corpus: typing.Unpack[_Corpus],
    ) -> Plan:
        """How many users hold each of given items, with intervals.

            frame.dphh.counts(user="author", item="dish", of=menu, epsilon=0.5, delta=1e-8)

        of: A release, or a file with one item a line.
        max_held: A user who holds more items counts less in each. Without it, the run chooses.
        top: The most items to take from a release.
        min_length: The fewest tokens of an item.
        by: The column of groups to count within.
        groups: Names of groups, with commas; the rest is 'other'.
        confidence: Chance that an interval contains the true count.
        simultaneous: The confidence is for all intervals at once.
        epsilon: The privacy budget: 1 is strict, 8 is weak.
        delta: Probability on top of epsilon: well below 1 / users.
        """

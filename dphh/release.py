"""A release: the noised table and its manifest. It contains nothing that may not be published."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from dphh.columns import as_release_table, release_file, run_id_of, stored_table
from dphh.errors import UsageError
from dphh.exports import Exports
from dphh.files.whole_files import unwritable_error, write_unless_other_file, write_whole
from dphh.price import Privacy
from dphh.privacy.events import Event, events_from_json
from dphh.reader.paths import local_path_to_write
from dphh.wording.lines import printable_json
from dphh.wording.notebook import InNotebooks
from dphh.wording.options import check_choice, checked_call

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from dphh.ledger import Ledger
    from dphh.ledger.entries import StoredRelease
    from dphh.report.why import Why

TABLE, MANIFEST = "release.parquet", "release.json"
#: What is said of files that are not as the ledger stored them.
GET_AGAIN = "get it again from the ledger that paid for it, `dphh ledger release RUN_ID --out DIR`"


@dataclass(frozen=True, eq=False)
class Release(Exports, InNotebooks):
    """The released table and the manifest that explains it.

    `users` is a number of people, with an interval from `low` to `high`, where the run counted
    them. A `score` orders the items of one level and is not a number of people.
    """

    _INTERNAL = "files from_parquet parquet stored"

    table: Any
    manifest: dict[str, Any]
    #: The table's file as the ledger stores it, if it comes from there: another version of pyarrow
    #: would write other bytes, and `dphh.verify` compares bytes.
    stored: bytes | None = field(default=None, repr=False)
    #: Whether the run that returned it has paid: `False` where it is an earlier run's, for nothing;
    #: None if no run did, as of a release that was loaded.
    spent: bool | None = field(default=None, repr=False)
    #: The name of the folder it was loaded from. A page shows it if no condition on rows names it.
    name: str = ""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def privacy(self) -> Privacy:
        """The privacy statement, as `Plan.privacy`."""
        return Privacy.from_json(self.manifest["privacy"])

    @property
    def run_id(self) -> str:
        return str(self.manifest["run_id"])

    @property
    def events(self) -> tuple[Event, ...]:
        """What the run spent, step by step."""
        return events_from_json(self.manifest["events"])

    @property
    def is_test(self) -> bool:
        """Whether this is a test's release, which gives no privacy guarantee."""
        return bool(self.manifest.get("is_test"))

    def to_arrow(self) -> Any:
        return self.table

    def to_polars(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(self.table)

    def lazy(self) -> pl.LazyFrame:
        """The table as a lazy Polars frame, to join in a lazy query."""
        return self.to_polars().lazy()

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas frame. Requires pandas."""
        try:
            import pandas  # noqa: F401 - checked here because Arrow's own error is less clear
        except ImportError:
            raise UsageError("to_pandas: pandas is not installed; pip install pandas") from None
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    @checked_call
    def to_csv(self, path: str | Path, *, separator: Literal[",", ";"] = ",") -> Path:
        """Write the table as CSV for spreadsheets, with `tokens` as a JSON list, and with `phrase`:
        its wording on the page, in the rows that the page shows.

        All numbers are whole, scores are rounded: which sign begins decimals differs between
        countries, and a spreadsheet may read 1.018 as a thousand. Where it takes decimal commas,
        it splits cells at ";". A text that begins with `=`, `+`, `-` or `@` would be a formula, and
        users may have written one: such items get a leading quote. Read `release.parquet` where
        exact texts and scores matter.
        """
        import polars as pl

        from dphh.report.phrases import unescaped_phrases
        from dphh.wording.cells import csv_of, safe_list_cell

        check_choice("separator", separator, (",", ";"))
        if Path(path).suffix.lower() in (".xlsx", ".xls"):
            raise UsageError(f"to_csv: found {path}, which Excel opens as no CSV; name it .csv")
        tokens = pl.Series(
            "tokens", map(safe_list_cell, self.table["tokens"].to_pylist()), pl.String
        )
        whole = pl.col(pl.Float64).round().cast(pl.Int64)
        wordings = unescaped_phrases(self).select("tokens", "phrase").unique()
        table = self.to_polars().join(wordings, on="tokens", how="left", maintain_order="left")
        data = csv_of(table.with_columns(tokens, whole), separator)
        out = local_path_to_write("to_csv", path)
        write_unless_other_file("to_csv", out, data, data[: data.index(separator.encode())])
        return out

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Lets anything that takes Arrow tables take a release, such as `pl.DataFrame(release)`."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows as dictionaries."""
        for batch in self.table.to_batches():
            yield from batch.to_pylist()

    @checked_call
    def phrases(self) -> pl.DataFrame:
        """What people say, a row each, as on the page: those surely held by most are first.

        Released items that are pieces of one sentence are one `phrase`; its numbers are those of
        `item`, a released one in it. Where people were not counted, the longest items that no other
        contains; of a trie, whole sequences, and what was cut. Control characters are escaped;
        `to_polars` has the exact texts, and all that was released.
        """
        from dphh.report.phrases import phrases

        return phrases(self)

    @checked_call
    def change(
        self,
        earlier: Release | None = None,
        *,
        group: str | None = None,
        before: str | None = None,
        confidence: float = 0.95,
    ) -> pl.DataFrame:
        """What rose and what fell since an earlier release; or within this one, counted `by=` its
        weeks, from the group `before` to `group`: without these, of the last two.

        `difference` has an interval from `low` to `high`; `change` is "rose", "fell" or "no
        clear change". Noise alone decides what is clear: the people may be the same in both, the
        rows may not. Costs nothing. docs/weekly.md says what `confidence` means.
        """
        from dphh.report.change import change

        return change(self, earlier, group, before, confidence)

    @checked_call
    def why(self, phrase: str | Sequence[str]) -> Why:
        """Explain why a phrase is not in the release, from the release alone. Costs nothing."""
        from dphh.reader.views import tokens_of_texts
        from dphh.report.why import why

        return why(self, phrase, tokens_of_texts)

    @checked_call
    def plot(self, top: int = 25) -> Any:
        """An Altair chart of the first `top` items of each table of the page: of users, with their
        intervals, if users were counted; else of scores. Requires Altair: dphh[plot]. In a notebook
        without a network say `alt.renderers.enable("svg")` before."""
        from dphh.report.plot import plot

        return plot(self, top)

    @checked_call
    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        ledger: Ledger | None = None,
        top: int = 25,
        others: Sequence[Release] = (),
        against: Release | Sequence[Release] = (),
    ) -> Path:
        """Write one HTML file for readers: what was found, with bars and numbers, and the promise.

        ledger: say what is left in the accounts that paid. top: how many rows of each table are
        open; the rest is folded. others: further releases for the same page; one that counted the
        same rows gives the numbers of what this one found. against: earlier releases; say
        beside each row of the first that one compares with whether it rose or fell (`change`).
        """
        from dphh.report.page import page_of

        out = local_path_to_write("report", path)
        earlier = [against] if isinstance(against, Release) else against
        page = page_of(self, title=title, ledger=ledger, top=top, others=others, against=earlier)
        write_unless_other_file("report", out, page.encode(), b"<!doctype html>")
        return out

    @checked_call
    def save(self, folder: str | Path) -> Path:
        """Write `release.parquet`, then `release.json`; each is written whole or not at all."""
        out = checked_folder(folder, self.run_id)
        try:
            out.mkdir(parents=True, exist_ok=True)
            for name, data in self.files().items():
                write_whole(out / name, data)
        except OSError as problem:
            raise unwritable_error("out", out, problem) from None
        return out

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """The release that `save` wrote. Refuses one that contradicts itself, as an edited one
        does. Whether it may be passed on, `dphh.verify` says."""
        out = Path(folder)
        try:
            table, manifest = ((out / name).read_bytes() for name in (TABLE, MANIFEST))
        except OSError as problem:
            raise UsageError(
                f"release: {problem.filename} could not be read ({problem.strerror}); give the "
                "folder that --out or Release.save wrote"
            ) from None
        from dphh.consistency import check_consistency

        release = replace(release_of_files(table, manifest), name=out.resolve().name)
        check_consistency(release)
        return release

    @classmethod
    def from_parquet(cls, data: bytes, manifest: dict[str, Any]) -> Release:
        """The release of a table's file and a manifest, as the ledger stores them."""
        try:
            table = stored_table(data)
            run_id = run_id_of(table.schema)
            table = as_release_table(table.replace_schema_metadata(None))
        except (pa.ArrowException, KeyError, OSError, TypeError, ValueError):
            raise UsageError(
                f"release: {TABLE} cannot be read as a release's table: it is another file, or "
                f"bytes of it are missing, changed or added; {GET_AGAIN}"
            ) from None
        other = manifest.get("run_id") if isinstance(manifest, dict) else None
        if run_id is None or other is None:
            bare = MANIFEST if other is None else f"the metadata of {TABLE}"
            raise UsageError(f"release: {bare} does not say of which run it is; {GET_AGAIN}")
        if run_id != other:
            raise UsageError(
                f"release: {TABLE} is of the run {run_id!r:.99}, and {MANIFEST} of "
                f"{other!r:.99}: two releases were mixed, or one was edited; {GET_AGAIN}"
            )
        return cls(table, manifest)

    def files(self) -> dict[str, bytes]:
        """The files of its folder, by name."""
        return {TABLE: self.parquet(), MANIFEST: (self.dumps() + "\n").encode()}

    def parquet(self) -> bytes:
        """The table as one Parquet file that contains its run id."""
        return self.stored or release_file(self.table, self.run_id)

    def dumps(self) -> str:
        # With sorted keys, a release that the ledger returns is identical byte for byte.
        said = json.dumps(self.manifest, indent=2, ensure_ascii=False, sort_keys=True)
        return printable_json(said)

    def __repr__(self) -> str:
        from dphh.report.terminal import release_text  # imports Polars

        return release_text(self)

    def _repr_html_(self) -> str:
        from dphh.report.page import release_card

        return release_card(self)


def stored_release(book: Ledger, run_id: str) -> Release:
    """The release of a settled run, as a ledger has stored it."""
    return release_as_stored(book.release(run_id))


def release_as_stored(found: StoredRelease) -> Release:
    return replace(Release.from_parquet(found.parquet, found.manifest), stored=found.parquet)


def release_of_files(table: bytes, manifest: bytes) -> Release:
    """The release whose two files somebody sent; not yet checked (`check_consistency`)."""
    try:
        said = json.loads(manifest.decode())
    except (ValueError, RecursionError):
        raise UsageError(f"release: {MANIFEST} is not JSON; it must not be passed on") from None
    return Release.from_parquet(table, said)


def checked_folder(folder: str | Path, run_id: str | None) -> Path:
    """The folder to write to, which need not be there. It is refused, before anything is spent, if
    it takes no files or has a release of another run."""
    out = local_path_to_write("out", folder).absolute()
    try:
        # A link to nowhere is tried too: no folder can be made there.
        existing = next(each for each in (out, *out.parents) if each.exists() or each.is_symlink())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as problem:
        raise UsageError(
            f"out: {out} cannot be written ({problem.strerror}); give another folder"
        ) from None
    if _has_other_release(out, run_id):
        raise UsageError(
            f"out: {out} already contains another release, which was paid for; "
            "give a new folder, or move that release"
        )
    return out


def _has_other_release(out: Path, run_id: str | None) -> bool:
    """Whether a folder has a release of another run, or a file that is none. An interrupted write
    leaves only the table."""
    run_ids = []
    try:
        if (out / TABLE).exists():
            run_ids.append(run_id_of(pq.read_schema(out / TABLE)))
        if (out / MANIFEST).exists():
            run_ids.append(json.loads((out / MANIFEST).read_bytes()).get("run_id"))
    except (AttributeError, OSError, ValueError):
        return True
    return any(run_id is None or each != run_id for each in run_ids)

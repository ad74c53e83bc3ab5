"""Settings of an instance of DuckDB: no progress bar, and access to remote stores, which it reads
through its httpfs extension with the process's credentials."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from urllib.parse import urlsplit

import duckdb

from dphh.errors import CorpusError
from dphh.reader.corpus import Corpus
from dphh.reader.paths import is_remote
from dphh.reader.quoted import literal


def hide_progress_bar(con: duckdb.DuckDBPyConnection) -> None:
    """Switch off DuckDB's own progress bar, which would tell how much data each step reads. In a
    kernel without ipywidgets it is off already, and DuckDB refuses to switch it off."""
    ((on,),) = con.execute("SELECT current_setting('enable_progress_bar')").fetchall()
    if on:
        con.execute("SET enable_progress_bar = false")


def reach_stores(con: duckdb.DuckDBPyConnection, corpus: Corpus) -> None:
    """Let an instance read the remote addresses of a corpus, if it has any."""
    remote = [place for place in corpus.where if corpus.kind == "path" and is_remote(place)]
    if not remote:
        return
    try:
        file = extension_file("httpfs")
        # INSTALL does nothing if the extension is installed.
        con.execute("INSTALL httpfs; LOAD httpfs" if file is None else f"LOAD {literal(str(file))}")
    except duckdb.Error as problem:
        raise CorpusError(
            f"corpus: {remote[0]}: DuckDB needs its extension httpfs to read from a store, and "
            f"could not load it ({type(problem).__name__}): run INSTALL httpfs in DuckDB "
            f"{duckdb.__version__} with a network connection, or download the files"
        ) from None
    if any(place.lower().startswith("s3") for place in remote):
        con.execute(_credentials_sql())


def extension_file(name: str, version: str = duckdb.__version__) -> Path | None:
    """The file of a DuckDB extension, if a Python package has it for this version of DuckDB; None
    otherwise. An extension loads only into the version for which it was built."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    for folder in (spec and spec.submodule_search_locations) or ():
        file = Path(folder, "extensions", f"v{version}", f"{name}.duckdb_extension")
        if file.is_file():
            return file
    return None


def _credentials_sql() -> str:
    """SQL that gives DuckDB the credentials in the `AWS_...` variables, where Polars and Delta's
    reader also find them. Without credentials, SQL that does nothing."""
    given = os.environ.get
    options = {
        "KEY_ID": given("AWS_ACCESS_KEY_ID"),
        "SECRET": given("AWS_SECRET_ACCESS_KEY"),
        "SESSION_TOKEN": given("AWS_SESSION_TOKEN"),
        "REGION": given("AWS_REGION") or given("AWS_DEFAULT_REGION"),
    }
    if endpoint := given("AWS_ENDPOINT_URL_S3") or given("AWS_ENDPOINT_URL"):
        parts = urlsplit(endpoint)
        options |= {"ENDPOINT": parts.netloc, "URL_STYLE": "path"}
        options["USE_SSL"] = "false" if parts.scheme == "http" else "true"
    said = "".join(
        f", {option} {literal(value)}" for option, value in options.items() if value is not None
    )
    return f"CREATE SECRET (TYPE s3{said})" if options["KEY_ID"] else "SELECT 1"

"""Code for analysts' own programs that ask a gateway: an init file for DuckDB's shell with the
macros over HTTP, and lines for Polars and curl."""

from __future__ import annotations

from html import escape

from dphh.asking.macros import Macro, argument_as_text, column_sql_types, macro_sql, macros
from dphh.sql import literal

#: How long DuckDB's shell waits for an answer. After that it sends the request again by itself.
_WAIT_SECONDS = 3600


_HEAD = """\
-- dphh at {address}. Keep this file to yourself: it has your token.
-- DuckDB loads its extension httpfs by itself, and installs it where it can. Without a network:
-- pip install duckdb-extension-httpfs==VERSION, that of your DuckDB, brings it as a file, which
-- LOAD '/.../httpfs.duckdb_extension'; loads: write that as the first line.
-- DuckDB takes no query for an argument here: SET VARIABLE words = (SELECT list(item) FROM mine);
-- and then of := getvariable('words').
"""


def init_sql(address: str, token: str) -> str:
    """The statements that DuckDB's shell runs first: they store the token and create the macros.

    The macros read lines of JSON, with the columns written out: so DuckDB asks the gateway for
    nothing while it plans a query, and EXPLAIN and PREPARE spend nothing.
    """
    for_analysts = [macro for macro in macros().values() if not macro.for_owner]
    return (
        _HEAD.format(address=address) + f"SET http_timeout = {_WAIT_SECONDS};\n"
        f"CREATE OR REPLACE SECRET dphh (TYPE http, BEARER_TOKEN {literal(token)}, "
        f"SCOPE {literal(address + '/')});\n"
        + "".join(macro_sql(macro, _source_sql(address, macro)) for macro in for_analysts)
    )


def _source_sql(address: str, macro: Macro) -> str:
    """An SQL expression that reads the gateway's answer to those arguments that are not NULL."""
    parameters = list(macro.parameters)
    parts = [literal(f"{address}/v1/{macro.gateway_path}")]
    if macro.gateway_path.endswith("/"):
        parts.append(f"url_encode({argument_as_text(parameters.pop(0))})")
    parts.append("'.jsonl?'" if parameters else "'.jsonl'")
    parts += [f"'&{name}=' || url_encode({argument_as_text(name)})" for name in parameters]
    url = f"concat({', '.join(parts)})".replace("'&", "'", 1)
    types = column_sql_types(macro).items()
    columns = ", ".join(f'"{name}": {literal(sql_type)}' for name, sql_type in types)
    return f"read_json({url}, format := 'newline_delimited', columns := {{{columns}}})"


def lines_for_other_clients(address: str, token: str) -> str:
    """Lines of Python and of a shell with which Polars and curl ask the gateway."""
    bearer = f"Bearer {token}"
    return (
        "import polars as pl, urllib.request as web\n"
        f"asked = web.Request('{address}/v1/ledger', headers={{'Authorization': '{bearer}'}})\n"
        "pl.read_parquet(web.urlopen(asked).read())\n\n"
        f"curl -H 'Authorization: {bearer}' -H 'Accept: application/json' '{address}/v1/ledger'\n"
    )


def gateway_page(address: str) -> str:
    """The HTML page at `/`: it shows people who have a token how to ask."""
    init, others = (
        escape(text_of(address, "YOUR-TOKEN")) for text_of in (init_sql, lines_for_other_clients)
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>dphh</title><style>
:root {{ color-scheme: light dark }} body {{ max-width: 50rem; margin: auto; padding: 1rem;
font: 1rem/1.5 system-ui }} pre {{ overflow: auto; max-height: 20rem; border: 1px solid }}
</style>
<h1>What many people share, with differential privacy</h1>
<p>This server answers questions about private data with releases: tables of what many people have
in common, with noise, within a budget. No row leaves it. The data's owner gives tokens.</p>
<p><b>DuckDB's shell:</b> save this with your token as <code>dphh.sql</code>, for you alone to read,
start <code>duckdb -init dphh.sql</code>, and ask <code>FROM dphh_help();</code></p>
<pre>{init}</pre><p><b>Polars and curl:</b> <code>/v1/help</code> lists the addresses.</p>
<pre>{others}</pre></html>
"""

"""A plugin of dbt-duckdb, so that models may ask dphh's macros. In profiles.yml, of the target:

    plugins:
      - module: dphh.asking.dbt
        config: {ledger: /srv/dphh/ledger.sqlite}

A model that spends is a table or incremental: a view would ask again whenever it is read.
"""

from __future__ import annotations

from typing import Any

import duckdb
from dbt.adapters.duckdb.plugins import BasePlugin

from dphh.asking.connect import register


class Plugin(BasePlugin):  # type: ignore[misc]
    """Gives each cursor of dbt the macros of `dphh.register`."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        self._options = plugin_config

    def configure_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        register(cursor, **self._options)

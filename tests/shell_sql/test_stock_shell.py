"""The stock DuckDB shell, where there is one, and the pages that show what to type."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from dphh.sql import query

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "shell-sql.md"
SESSION = REPOSITORY / "examples" / "duckdb_shell_session.sql"


@pytest.fixture(scope="module")
def shell() -> str:
    beside = Path(sys.executable).with_name("duckdb")
    found = str(beside) if beside.exists() else shutil.which("duckdb")
    if found is None:
        pytest.skip("needs the stock DuckDB shell, beside Python or on the path: pip's duckdb-cli")
    return found


@pytest.fixture(scope="module")
def file() -> str:
    """The path that `dphh sql` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "dphh", "sql"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def typed(shell: str, arguments: Sequence[str], text: str, folder: Path) -> str:
    done = subprocess.run(
        [shell, "-bail", *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=250,
        check=False,
        env={"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the table of prices that the page's command writes."""
    folder = tmp_path_factory.mktemp("prices")
    (asked,) = re.findall(r"^    dphh (sql --prices .*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    subprocess.run([sys.executable, "-m", "dphh", *asked.split()], check=True, cwd=folder)
    return folder


def examples() -> list[tuple[str, str]]:
    """The page's queries, each with the table that it shows below."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"```sql\n([^`]*)```\n\n((?:\|[^\n]*\n)+)", page)
    assert len(found) == page.count("```sql")
    return found


def cells(table: str) -> list[list[str]]:
    """The cells of a Markdown table, without the line below its head."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()
    ]
    return [lines[0], *lines[2:]]


def test_the_file_is_what_python_loads(file: str) -> None:
    assert Path(file).read_text(encoding="utf-8") == query("shell")


@pytest.mark.parametrize("how", ["init", "read"])
def test_the_page_says_what_the_stock_shell_says(
    shell: str, file: str, prices: Path, how: str
) -> None:
    text = "".join(f"{sql}\n.print ---\n" for sql, _ in examples())
    if how == "read":
        text = f".read '{file}'\n{text}"
    arguments = ["-init", file] if how == "init" else []
    said = typed(shell, [*arguments, "-markdown"], text, prices).split("---\n")
    # A setup statement shows nothing; a Markdown head has dashes of its own, with bars.
    assert [cells(part) for part in said if part.strip()] == [cells(t) for _, t in examples()]


def test_the_page_says_what_duckdb_says_in_python(
    prices: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prices)
    with duckdb.connect() as con:
        con.execute(query("shell"))
        for sql, table in examples():
            cursor = con.execute(sql)
            head = [column[0] for column in cursor.description or []]
            columns = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in head)
            body = sql.strip().rstrip(";").rsplit(";", 1)[-1]
            shown = con.execute(f"SELECT {columns} FROM ({body})").fetchall()
            found = [head, *(["NULL" if cell is None else cell for cell in row] for row in shown)]
            assert [[cell.strip() for cell in row] for row in found] == cells(table), sql


def test_the_example_session_runs(shell: str, file: str, tmp_path: Path) -> None:
    said = typed(shell, ["-init", file, "-csv"], SESSION.read_text(encoding="utf-8"), tmp_path)
    assert "popular-1" in said
    assert "secret-" not in said

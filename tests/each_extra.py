"""Each extra alone, as a stranger gets it: the wheel with that extra, in an environment of its own,
does what the extra is for. Without any, what needs one says what to install, and nothing is spent.

    python tests/each_extra.py [NAME ...]        of all extras and `core`, or of these

This Python needs `build`, and pyiceberg with a catalog, which writes the table that is read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ["good morning to all", "see you later"]
COST = {"epsilon": 4.0, "delta": 1e-6}
#: The same request at the command line and by HTTP.
CORPUS_OPTIONS = ["--user", "user", "--text", "text"]
COST_OPTIONS = ["--epsilon", "4", "--delta", "1e-6"]


# What runs in an extra's environment, in an empty folder.


def rows() -> Any:
    import pyarrow as pa

    return pa.table({"user": [f"u{i // 2}" for i in range(1200)], "text": TEXTS * 600})


def written() -> str:
    import pyarrow.parquet as pq

    pq.write_table(rows(), "reviews.parquet")
    return "reviews.parquet"


def release_of(source: Any, verb: str = "items", options: Any = None, **run: Any) -> Any:
    """A release in which everything is found: 600 users share it."""
    import dphh

    corpus = dphh.Corpus(source, user="user", text="text")
    plan = getattr(dphh, verb)(corpus, **COST, **(options or {}))
    release = plan.run(ledger=dphh.Ledger("ledger", create=True), **run)
    found = {row["item"] for row in release}
    assert found >= {"good", "later"}, found
    assert verb != "ngrams" or "see you" in found, found
    return release


def told(*command: str, code: int = 0) -> str:
    """What a command of dphh says on both streams."""
    program = str(Path(sys.executable).parent / "dphh")
    ended = subprocess.run(
        [program, *command], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == code, (command, ended.returncode, ended.stderr)
    return ended.stdout + ended.stderr


def add_account() -> None:
    told("ledger", "add", "reviews", written(), *CORPUS_OPTIONS, *COST_OPTIONS, "--ledger", "book")


def core() -> None:
    import dphh
    from dphh.testing import SeededRandomness

    release = release_of(written(), "ngrams", {"max_n": 2})
    runs = len(dphh.Ledger("ledger").runs())
    for log in (Path("lake/_delta_log/00.json"), Path("table/metadata/v1.metadata.json")):
        log.parent.mkdir(parents=True)
        log.write_text("{}")
        (log.parents[1] / "rows.parquet").write_bytes(Path("reviews.parquet").read_bytes())
    asked = {
        "plot": release.plot,
        "spark": lambda: release_of("reviews.parquet", engine="spark"),
        "testing": lambda: release_of("reviews.parquet", randomness=SeededRandomness(1)),
        "delta": lambda: release_of("lake"),
        "iceberg": lambda: release_of("table"),
    }
    for extra, ask in asked.items():
        try:
            ask()
        except dphh.DphhError as problem:
            assert f"pip install 'dphh[{extra}]'" in str(problem), problem
        else:
            raise AssertionError(f"{extra}: nothing was missing")
    assert "pip install 'dphh[serve]'" in told("serve", code=2)
    assert len(dphh.Ledger("ledger").runs()) == runs


def spark() -> None:
    release_of(written(), engine="spark")
    release_of("reviews.parquet", "ngrams", {"max_n": 2}, engine="spark")


def plot() -> None:
    release_of(rows()).plot().save("chart.html")
    assert "vega" in Path("chart.html").read_text() and "later" in Path("chart.html").read_text()


def notebook() -> None:
    import nbclient
    import nbformat

    book = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": "."}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert "soup today" in "".join(o.data.get("text/html", "") for o in outputs if "data" in o)
    assert not [output for output in outputs if output.get("name") == "stderr"]
    import altair

    with altair.renderers.enable("svg"):  # as a notebook without a network shows a chart
        (drawn,) = release_of(written()).plot()._repr_mimebundle_().values()
    assert drawn.startswith("<svg") and "later" in drawn


def delta() -> None:
    import polars as pl
    from deltalake import DeltaTable, write_deltalake

    write_deltalake("lake", rows())
    DeltaTable("lake").delete("text = 'see you later' AND user != 'u7'")
    corpus = {row["text"] for row in pl.scan_delta("lake").collect().to_dicts()}
    assert corpus == set(TEXTS)
    import dphh

    frame = dphh.Corpus(pl.scan_delta("lake"), user="user", text="text")
    found = {
        row["item"]
        for row in dphh.items(frame, **COST).run(ledger=dphh.Ledger("ledger", create=True))
    }
    assert found == {"good", "morning", "to", "all"}, found  # "later" has one user left


def iceberg_table() -> None:
    """In this script's own environment: the extra brings no catalog, as its readers have one."""
    from pyiceberg.catalog.sql import SqlCatalog

    where = f"file://{Path.cwd()}/warehouse"
    catalog = SqlCatalog("made", uri="sqlite:///catalog.db", warehouse=where)
    catalog.create_namespace("db")
    table = catalog.create_table("db.reviews", schema=rows().schema)
    table.append(rows())
    Path("location").write_text(table.metadata_location)


def iceberg() -> None:
    from pyiceberg.table import StaticTable

    release_of(StaticTable.from_metadata(Path("location").read_text()).scan().to_arrow())


def serve() -> None:
    add_account()
    share = ["--corpus", "reviews", *COST_OPTIONS, "--ledger", "book"]
    given = told("serve", "add-analyst", "alice", *share)
    (token,) = re.findall(r"the token of alice, shown once: (\S+)", given)
    program = str(Path(sys.executable).parent / "dphh")
    command = [program, "serve", "--port", "0", "--ledger", "book"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            (address,) = re.findall(r"serving (\S+) to 1 analyst", server.stderr.readline())
            said = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
            query = "epsilon=2&delta=1e-7"
            request = urllib.request.Request(
                f"{address}/v1/items?corpus=reviews&{query}", None, said
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                found = json.load(answer)
        finally:
            server.terminate()
    assert "later" in json.dumps(found), found


def testing() -> None:
    from dphh.testing import SeededRandomness

    path = written()
    one, other = (release_of(path, randomness=SeededRandomness(7)) for _ in range(2))
    assert one.table.equals(other.table) and one.manifest["is_test"]


def examples() -> None:
    script = str(ROOT / "examples" / "triehh_figures.py")
    subprocess.run(
        [sys.executable, script, "--out", "figures"], stdout=subprocess.DEVNULL, check=True
    )
    assert len(list(Path("figures").glob("figure-*.png"))) == 10


def docs() -> None:
    site = Path.cwd() / "site"
    build = ["-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, *build], cwd=ROOT, env=quiet, check=True)
    assert "max_items" in (site / "options.html").read_text()  # made from the code


USES = {
    each.__name__: each
    for each in (core, testing, plot, delta, iceberg, serve, examples, docs, notebook, spark)
}


# What makes the environments, one after the other, and removes each.


def use_alone(name: str, wheel: Path, folder: Path) -> None:
    here = folder / name
    here.mkdir()
    begun = time.monotonic()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DPHH"))}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", here / "venv"], check=True)
    program = here / "venv" / "bin" / "python"
    wanted = str(wheel) if name == "core" else f"{wheel}[{name}]"
    pip = [sys.executable, "-m", "pip", "--python", program, "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, wanted], env=environment, check=True)
    installed = time.monotonic()
    empty = here / "empty"
    empty.mkdir()
    # Programs that a use starts by name, as Spark does Python, are the environment's own.
    environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    if name == "iceberg":
        run_use([sys.executable], "iceberg_table", empty, dict(os.environ))
    run_use([program, "-W", "ignore::UserWarning"], name, empty, environment)
    used = time.monotonic()
    print(
        f"{name}: installed in {installed - begun:.0f} s, used in {used - installed:.0f} s",
        flush=True,
    )


def run_use(python: list[Any], use: str, folder: Path, environment: dict[str, str]) -> None:
    # -P: beside this script are the tests' modules, which are no part of what is installed.
    command = [*python, "-P", __file__, "--use", use]
    subprocess.run(command, cwd=folder, env=environment, timeout=300, check=True)


def main(names: list[str]) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    assert extras - {"dev"} == set(USES) - {"core"}, "each extra has its use here"
    with tempfile.TemporaryDirectory() as made:
        build = [sys.executable, "-m", "build", "--outdir", made, ROOT]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        if built.returncode:
            sys.exit(built.stdout + built.stderr)
        (wheel,) = Path(made).glob("*.whl")
        for name in names or USES:
            with tempfile.TemporaryDirectory() as folder:
                use_alone(name, wheel, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--use"]:
        {**USES, "iceberg_table": iceberg_table}[sys.argv[2]]()
    else:
        main(sys.argv[1:])

"""Analysts have macOS and Windows, where no test runs. So what Linux alone has is hidden from a
process that does all of an analyst's work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HIDDEN = """
import builtins, io, os, pathlib, signal, sys

for module in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[module] = None
for of, names in {
    os: "getuid geteuid getgid fork register_at_fork listxattr O_NOFOLLOW O_CLOEXEC set_blocking "
        "sysconf sched_getaffinity getloadavg",
    signal: "SIGHUP SIGALRM setitimer pthread_sigmask",
}.items():
    for name in names.split():
        if hasattr(of, name):
            delattr(of, name)

def without_proc(function):
    def checked(path, *arguments, **named):
        if str(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file", str(path))
        return function(path, *arguments, **named)
    return checked

for of, name in ((os, "stat"), (os, "open"), (os, "readlink"), (builtins, "open"), (io, "open")):
    setattr(of, name, without_proc(getattr(of, name)))
"""

WORK = (
    HIDDEN
    + """
from pathlib import Path
import polars as pl
import dphh
from dphh.files.private_folder import FOLDER_PREFIX, PrivateFolder
from dphh.files.stopping import stopping

rows = pl.DataFrame({"who": range(400), "what": ["thank you very much"] * 400})
rows.write_parquet("held.parquet")
corpus = dphh.Corpus("held.parquet", user="who", text="what")
book = dphh.Ledger("ledger.sqlite", create=True)
book.add("held", corpus, 3.0, 1e-6)
plan = dphh.ngrams(corpus, max_n=2, epsilon=1.0, delta=1e-7)
print(plan.describe(book))
abandoned, held = Path(sys.argv[1]), PrivateFolder()
assert not abandoned.exists()  # nobody has its lock
with stopping():
    for engine, limit in (("duckdb", "1GB"), ("polars", None)):
        release = plan.run(ledger=book, engine=engine, memory_limit=limit, again=True)
        assert "thank you" in release.to_polars()["item"].to_list()
    assert plan.run(ledger=book).run_id == release.run_id
release.save("out")
assert dphh.Release.load("out").table == release.table
assert len(dphh.Ledger("ledger.sqlite").runs()) == 2
held.close()
assert not list(Path(os.environ["TMPDIR"]).glob(FOLDER_PREFIX + "*"))
from dphh.cli import main
sys.argv = ["dphh", "report", "out", "-o", "page.html"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
assert Path("page.html").stat().st_size > 1000
print("all is done")
"""
)


@pytest.mark.slow
def test_nothing_that_linux_alone_has_is_needed(tmp_path):
    (tmp_path / "tmp/dphh-run-abandoned").mkdir(parents=True)
    abandoned = tmp_path / "tmp/dphh-run-abandoned"
    (abandoned / ".lock").touch()
    (abandoned / "rows").write_text("SENTINEL")
    paths = {"TMPDIR": tmp_path / "tmp", "XDG_DATA_HOME": tmp_path, "PYTHONPATH": ROOT}
    own = {name: str(path) for name, path in paths.items()}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORK, str(abandoned)],
        check=False, cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("all is done\n"), done.stderr


@pytest.mark.parametrize("folder", ["dphh", "udfs", "sql"])
def test_what_linux_alone_has_is_named_where_it_may_be_missing_alone(folder):
    """The gateway alone needs it."""
    may = {"dphh/gateway/worker.py", "dphh/files/private_folder.py"}
    files = sorted((ROOT / folder).rglob("*.py"))
    naming = {
        str(file.relative_to(ROOT))
        for file in files
        if any(f"import {name}\n" in file.read_text() for name in ("fcntl", "resource", "pwd"))
    }
    assert naming <= may

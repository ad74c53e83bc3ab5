"""Plant mutants in copies of the tree and run the tests that must catch them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.places import DoesNotApply, place_of, replaced, texts_of
from tests.mutants.planted import Mutant

ROOT = Path(__file__).parents[2]
#: Seconds; what runs longer is no verdict. All tests together, before any mutant, may take more.
PATIENCE, PATIENCE_WITH_ALL = 600, 7200
#: pytest's exit code where tests ran and some failed.
TESTS_FAILED = 1


@dataclass(frozen=True)
class Verdict:
    mutant: Mutant
    caught: bool
    said: str
    seconds: float


@contextmanager
def planted(mutant: Mutant, tree: Path) -> Iterator[Path]:
    place, span = place_of(mutant.at, mutant.old, texts_of(tree))
    path = tree / place
    before = path.read_text(encoding="utf-8")
    after = replaced(before, span, mutant.new)
    if after == before:
        raise DoesNotApply("it changes nothing")
    if path.suffix == ".py":
        ast.parse(after)  # a mutant that does not compile is caught by anything
    path.write_text(after, encoding="utf-8")
    try:
        yield path
    finally:
        path.write_text(before, encoding="utf-8")


def copy_of_tree(to: Path, root: Path = ROOT) -> Path:
    """The tree as git knows it, importable by itself."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, check=True,
    ).stdout.decode()  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    # As the installed package has them.
    for part in ("sql", "udfs"):
        (to / "dphh" / part).symlink_to(to / part)
    return to


def tested(
    tree: Path, tests: Sequence[str], older: bool = False, patience: float = PATIENCE
) -> tuple[int, str]:
    """pytest's exit code and the end of what it said; where all was skipped, nothing was tested."""
    python = str(ROOT / ".venv-duckdb15" / "bin" / "python") if older else sys.executable
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    options = ["-x", "-q", "-p", "no:cacheprovider", "--engines", "duckdb,polars"]
    command = [python, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=patience,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"not done after {patience} seconds"
    said = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
    passed = re.search(r"^[.sx]*\.", done.stdout, re.MULTILINE)
    if done.returncode == 0 and passed is None:
        return -1, f"every test was skipped\n{said}"
    return done.returncode, said


def tried(mutant: Mutant, tree: Path) -> Verdict:
    start = time.monotonic()
    try:
        with planted(mutant, tree) as path:
            code, said = tested(tree, mutant.caught_by, mutant.older)
            where = path.relative_to(tree)
    except (DoesNotApply, SyntaxError) as problem:
        return Verdict(mutant, False, f"does not apply: {problem}", 0.0)
    caught = code == TESTS_FAILED
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    told = (failed[0] if failed else said) if caught else f"pytest gave {code}\n{said}"
    return Verdict(mutant, caught, f"{where}: {told}", time.monotonic() - start)


def plant_all(mutants: Sequence[Mutant], jobs: int, root: Path = ROOT) -> list[Verdict]:
    """Every mutant's verdict, said as it comes. First, all the tests must pass without any."""
    with tempfile.TemporaryDirectory(prefix="dphh-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy = Path(folder) / str(number)
            copy.mkdir()
            trees.put(copy_of_tree(copy, root))
        tests = sorted({(each.older, test) for each in mutants for test in each.caught_by})

        def without(older: bool, some: Sequence[str]) -> None:
            tree = trees.get()
            code, said = tested(tree, some, older, PATIENCE_WITH_ALL)
            trees.put(tree)
            if code:
                sys.exit(f"without a mutant tests fail, so that they would catch nothing:\n{said}")

        def one(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                verdict = tried(mutant, tree)
            finally:
                trees.put(tree)
            word = "caught" if verdict.caught else "SURVIVED"
            print(f"{word:8} {verdict.seconds:5.0f} s  {mutant.name}", flush=True)
            if not verdict.caught:
                print(f"         {verdict.said}", flush=True)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            for older in (False, True):
                some = [test for line, test in tests if line is older]
                parts = [part for part in (some[i::jobs] for i in range(jobs)) if part]
                list(pool.map(without, [older] * len(parts), parts))
            print(f"{len(tests)} tests pass without a mutant", flush=True)
            return list(pool.map(one, mutants))

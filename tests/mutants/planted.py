"""Read mutants from the lists beside this file, plant them in copies of the tree, test those."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants.places import DoesNotApply, place_of, replaced, texts_of, unknown_names

ROOT = Path(__file__).parents[2]
#: Seconds; what runs longer is no verdict. All tests together, before any mutant, may take more.
PATIENCE, PATIENCE_WITH_ALL = 600, 7200
#: pytest's exit code where tests ran and some failed.
TESTS_FAILED = 1


@dataclass(frozen=True)
class Mutant:
    """`old`, which stands once in what `at` names (places.py), becomes `new`."""

    name: str
    at: str
    old: str
    new: str
    #: As pytest is told them: files, or tests in them.
    caught_by: tuple[str, ...]


def read(text: str) -> Iterator[Mutant]:
    """The mutants of a list. An empty line ends each; lines that begin with # are comments.

    Where no place is named, it is that of the mutant above.
    """
    at = ""
    for block in text.split("\n\n"):
        name, *lines = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if not name:
            continue
        said: dict[str, list[str]] = {}
        for line in lines:
            word, _, rest = line.partition(" ")
            said.setdefault(word, []).append(rest)
        if unknown := said.keys() - {"in", "-", "+", "by"}:
            raise ValueError(f"{name}: lines begin with {sorted(unknown)}")
        (at,) = said.get("in", [at])
        old, new = ("\n".join(said.get(sign, [])) for sign in "-+")
        yield Mutant(name, at, old, new, tuple(said.get("by", ())))


MUTANTS = tuple(
    mutant
    for path in sorted(Path(__file__).parent.glob("*.txt"))
    for mutant in read(path.read_text(encoding="utf-8"))
)


@contextmanager
def planted(mutant: Mutant, tree: Path) -> Iterator[Path]:
    place, span = place_of(mutant.at, mutant.old, texts_of(tree))
    path = tree / place
    before = path.read_text(encoding="utf-8")
    after = replaced(before, span, mutant.new)
    if after == before:
        raise DoesNotApply("it changes nothing")
    if path.suffix == ".py" and (unknown := unknown_names(after) - unknown_names(before)):
        raise DoesNotApply(f"nothing defines {', '.join(unknown)}")
    path.write_text(after, encoding="utf-8")
    try:
        yield path
    finally:
        path.write_text(before, encoding="utf-8")


def copy_of_tree(to: Path) -> Path:
    """The tree as git knows it, importable by itself."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    # As the installed package has them.
    for part in ("sql", "udfs"):
        (to / "dphh" / part).symlink_to(to / part)
    return to


def tested(tree: Path, tests: Sequence[str], patience: float = PATIENCE) -> tuple[int, str]:
    """pytest's exit code and the end of what it said; where all was skipped, nothing was tested."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CI": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tree / ".hypothesis"),
    }
    options = ["-x", "-q", "-p", "no:cacheprovider", "--engines", "duckdb,polars"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=patience,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"not done after {patience} seconds"
    said = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
    if done.returncode == 0 and not re.search(r"^[.sx]*\.", done.stdout, re.MULTILINE):
        return -1, f"every test was skipped\n{said}"
    return done.returncode, said


def is_caught(mutant: Mutant, tree: Path) -> bool:
    start = time.monotonic()
    try:
        with planted(mutant, tree) as path:
            code, said = tested(tree, mutant.caught_by)
            said = f"{path.relative_to(tree)}: pytest gave {code}\n{said}"
    except (DoesNotApply, SyntaxError) as problem:
        code, said = -1, f"does not apply: {problem}"
    caught = code == TESTS_FAILED
    word = "caught" if caught else "SURVIVED"
    print(f"{word:8} {time.monotonic() - start:5.0f} s  {mutant.name}", flush=True)
    if not caught:
        print(f"         {said}", flush=True)
    return caught


def must_pass(tests: Sequence[str], tree: Path) -> None:
    code, said = tested(tree, tests, PATIENCE_WITH_ALL)
    if code:
        sys.exit(f"without a mutant tests fail, so that they would catch nothing:\n{said}")


def plant_all(mutants: Sequence[Mutant], jobs: int) -> list[bool]:
    """Whether each mutant is caught, said as it comes. Without any, all the tests must pass."""
    tests = sorted({test for each in mutants for test in each.caught_by})
    with tempfile.TemporaryDirectory(prefix="dphh-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            trees.put(copy_of_tree(Path(folder) / str(number)))

        def in_a_tree(work: Callable[[Any, Path], Any], given: Any) -> Any:
            tree = trees.get()
            try:
                return work(given, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            shares = filter(None, (tests[number::jobs] for number in range(jobs)))
            list(pool.map(partial(in_a_tree, must_pass), shares))
            return list(pool.map(partial(in_a_tree, is_caught), mutants))

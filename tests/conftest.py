"""What all tests share: engines to run on, ledgers of their own, corpora written for them."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

from dphh import Corpus, Ledger
from dphh.engines import ENGINES
from dphh.ledger import schema
from dphh.ledger.schema import default_path
from tests.leftovers import pytest_configure, pytest_sessionfinish, pytest_terminal_summary

#: Hooks: pytest finds them here.
__all__ = ["pytest_configure", "pytest_sessionfinish", "pytest_terminal_summary"]

# CI repeats the same examples, so that it fails for what changed; other runs go on exploring.
# No example has a deadline: a busy machine is no fault of what is tested.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("exploring", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "exploring")

#: What is printed is as wide as without a terminal; pytest-xdist says 80.
os.environ["COLUMNS"] = "100"

HERE = Path(__file__).parents[1]
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def spark_where_it_is_asked_for(request: pytest.FixtureRequest) -> None:
    if "spark" in _asked_of(request.node):
        request.getfixturevalue("spark")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


#: How many examples Hypothesis tries on an engine, in CI and with DPHH_FULL=1: on Spark each is a
#: handful of jobs, and on DuckDB an instance, which costs 40 times as much to open as on Polars.
#: The examples that a test names are tried besides, and Polars tries them all.
FEW_EXAMPLES = {"spark": (2, 4), "duckdb": (4, 100)}


#: Java that starts quickly and takes one processor less to collect its garbage.
SPARK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engines",
        metavar="NAME[,NAME...]",
        type=_engines,
        help=f"run every test of these engines ({', '.join(ENGINES)}) and none of the others'; "
        "without it all tests run, but on Spark only a few",
    )


def _engines(given: str) -> frozenset[str]:
    names = frozenset(given.split(","))
    if not names <= set(ENGINES):
        raise pytest.UsageError(f"--engines: found {given!r}; name some of {', '.join(ENGINES)}")
    return names


@pytest.hookimpl(tryfirst=True)  # before pytest's own hook, which chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in _engines_of(item):
            item.add_marker(pytest.mark.spark)
        if "audit" in item.path.parts and "polars" in _asked_of(item):
            # Engines release the same, integer for integer: one of them is audited every day.
            item.add_marker(pytest.mark.slow)
    asked: frozenset[str] | None = config.getoption("--engines")
    if asked is None:
        _few_on_spark(items)
        return
    chosen = [item for item in items if _engines_of(item) <= asked]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def _few_on_spark(items: list[pytest.Item]) -> None:
    """On Spark a test takes seconds: where nothing is said, those that are marked `on_spark` run
    there, with one set of values each, or `every` one that has the values that the mark names."""
    seen = set()
    for item in items:
        if "spark" not in _asked_of(item):
            continue
        mark = item.get_closest_marker("on_spark")
        test = item.nodeid.split("[")[0]
        if mark is None or (test in seen and not _is_of_every(mark, item)):
            item.add_marker(pytest.mark.skip(reason="on Spark with --engines spark"))
        seen.add(test)


def _is_of_every(mark: pytest.Mark, item: pytest.Item) -> bool:
    given = getattr(item, "callspec", None)
    values = {"every": False, **mark.kwargs}
    return values.pop("every") and given is not None and values.items() <= given.params.items()


def _asked_of(item: pytest.Item) -> set[str]:
    """The engines that a test's parameters name."""
    asked = getattr(item, "callspec", None)
    named = set() if asked is None else {asked.params.get("engine"), asked.params.get("other")}
    return named & set(ENGINES)


def _engines_of(item: pytest.Item) -> set[str]:
    """The engines that a test runs on; one that names none of them runs always."""
    spark_alone = {"spark"} if "spark" in getattr(item, "fixturenames", ()) else set()
    return _asked_of(item) | spark_alone


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    test = getattr(item, "obj", None)
    name = "_hypothesis_internal_use_settings"
    given = [FEW_EXAMPLES[engine][full()] for engine in _asked_of(item) & FEW_EXAMPLES.keys()]
    if not given or not hasattr(test, name):
        yield
        return
    usual = getattr(test, name)
    few = min(*given, usual.max_examples)
    setattr(test, name, settings(usual, max_examples=few))
    try:
        yield
    finally:
        setattr(test, name, usual)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark for all tests: starting one takes seconds. A task may fail twice and go on."""
    sql = pytest.importorskip("pyspark.sql", reason="needs dphh[spark]")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("needs Java 17 for Spark")
    # Small queries, many of them: compiling them costs more than running them. Processes of their
    # own, which tests start and kill, take the same.
    conf = Path(mkdtemp(prefix="dphh-tests-"))
    quick = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.warehouse.dir": str(conf),
        "spark.driver.extraJavaOptions": SPARK_JAVA,
    }
    lines = "".join(f"{setting} {value}\n" for setting, value in quick.items())
    (conf / "spark-defaults.conf").write_text(lines)
    os.environ["SPARK_CONF_DIR"] = str(conf)
    # Workers find this folder's tests as this process does.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.appName("dphh's tests").master("local[2,3]")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    shutil.rmtree(conf)


@pytest.fixture(scope="session", autouse=True)
def no_power_cut() -> Iterator[str]:
    """Ledgers and files do not wait for the disk here, which took most of a test's time: what a
    killed process has written stays written, and nobody pulls the plug. Gives the setting of the
    product.
    """
    shipped = schema.SYNCHRONOUS
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "SYNCHRONOUS", "OFF")
        patched.setattr(os, "fsync", lambda file: None)
        yield shipped


@pytest.fixture(autouse=True)
def own_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the ledger of whoever runs it, nor what it keeps of public texts."""
    monkeypatch.delenv("DPHH_LEDGER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own-data"))
    monkeypatch.setenv("DPHH_CACHE", str(tmp_path / "own-cache"))
    return default_path()


@pytest.fixture
def ledger(own_ledger: Path) -> Ledger:
    return Ledger(own_ledger)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Corpus]:
    """Write rows (user, content) to Parquet and give them as a corpus."""

    def write(rows: Sequence[tuple[Any, Any]], **options: Any) -> Corpus:
        path = tmp_path / "corpus.parquet"
        frame = pl.DataFrame(
            {"who": [row[0] for row in rows], "what": [row[1] for row in rows]}, strict=False
        )
        frame.write_parquet(path)
        return Corpus(str(path), user="who", **({"text": "what"} | options))

    return write


class NoNoise:
    """Randomness whose every word is all ones: the rounded Gaussian inverts it to zero."""

    is_test = True

    def random_words(self, count: int, purpose: str, keys: pa.Array | None = None) -> Any:
        return np.full(count, 2**64 - 1, dtype=np.uint64)


@pytest.fixture
def no_noise() -> NoNoise:
    return NoNoise()


@pytest.fixture
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the data beside the repository ({SHARED_DATA.parent.name}/data)")
    return SHARED_DATA


def full() -> bool:
    """Whether slow suites run with all their counts, rather than CI's."""
    return os.environ.get("DPHH_FULL") == "1"

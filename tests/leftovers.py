"""Tests leave nothing behind: a temporary directory of their own, which is looked at in the end."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

#: What the product and its tests call their folders; what others leave there is others'.
_OURS = ("dphh", "spark-warehouse")
_HERE = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # a worker of xdist has its controller's
    config.dphh_warehouse = _warehouse().exists()  # type: ignore[attr-defined]
    folder = _in_memory(config) or tempfile.gettempdir()
    # pytest's own folders stay where they are looked for.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)
    own = tempfile.mkdtemp(prefix="tests-of-dphh-", dir=folder)
    Path(own).chmod(0o711)  # a test may become somebody else
    config.dphh_temporary = own  # type: ignore[attr-defined]
    os.environ["TMPDIR"] = own
    tempfile.tempdir = own


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    own = getattr(session.config, "dphh_temporary", None)
    if own is None:
        return
    session.config.dphh_left = left = sorted(  # type: ignore[attr-defined]
        each.name for each in Path(own).iterdir() if each.name.startswith(_OURS)
    )
    if _warehouse().exists() and not session.config.dphh_warehouse:  # type: ignore[attr-defined]
        left.append(str(_warehouse()))
    tempfile.tempdir = None
    shutil.rmtree(own, ignore_errors=True)
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Said last, beside the count of tests: the run fails for it though each of them passed."""
    left = getattr(terminalreporter.config, "dphh_left", [])
    if left:
        terminalreporter.section("left behind in the temporary directory", red=True)
        terminalreporter.line(", ".join(left))


def _in_memory(config: pytest.Config) -> str | None:
    """Where quick tests write, whose files are many and small: on a disk, to remove a folder takes
    a millisecond, and many while others write."""
    memory = "/dev/shm"
    if "not slow" not in config.option.markexpr or not os.access(memory, os.W_OK):
        return None
    there = os.statvfs(memory)
    has_room = there.f_bavail * there.f_frsize > 2**31
    return memory if has_room and not there.f_flag & os.ST_NOEXEC else None


def _warehouse() -> Path:
    """What Spark makes in the current folder unless it is told otherwise."""
    return _HERE / "spark-warehouse"

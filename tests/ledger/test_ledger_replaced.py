"""A ledger that was copied back, or lost, and one on a file system that machines share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dphh import Ledger, LedgerError
from dphh.ledger import Request, Source, networks
from dphh.ledger.older_copy import SUFFIX

WHERE = Source("frame", ("rows",), "user")


def spend(book: Ledger, run: str) -> None:
    book.reserve(run, Request(WHERE, "items", {}, [], 0.1, 0.0))


def note_of(book: Ledger) -> Path:
    return book.path.with_name(book.path.name + SUFFIX)


@pytest.fixture
def spent(ledger: Ledger, tmp_path: Path) -> Path:
    """Two runs, and a copy of the ledger from before the second; a third write notes the second."""
    ledger.add("rows", WHERE, 1.0, 1e-6)
    spend(ledger, "one")
    yesterday = tmp_path / "yesterday.sqlite"
    shutil.copy(ledger.path, yesterday)
    spend(ledger, "two")
    ledger.set_cap("rows", 0.5, 1e-6)
    return yesterday


def test_a_ledger_that_was_copied_back_is_read_and_not_spent_from(
    ledger: Ledger, spent: Path
) -> None:
    newest = ledger.path.read_bytes()
    shutil.copy(spent, ledger.path)
    with pytest.raises(LedgerError, match="replaced by an older copy"):
        spend(ledger, "three")
    assert [run.run_id for run in ledger.runs()] == ["one"]
    ledger.path.write_bytes(newest)
    spend(ledger, "three")
    assert len(ledger.runs()) == 3


def test_a_ledger_that_was_lost_is_not_begun_anew(ledger: Ledger, spent: Path) -> None:
    ledger.path.unlink()
    with pytest.raises(LedgerError, match=r"has 0 runs and 0 caps, and had 2"):
        spend(ledger, "three")


def test_an_older_cap_is_older_too(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add("rows", WHERE, 1.0, 1e-6)
    shutil.copy(ledger.path, tmp_path / "before")
    ledger.set_cap("rows", 0.1, 1e-6)
    spend(ledger, "one")
    shutil.copy(tmp_path / "before", ledger.path)
    with pytest.raises(LedgerError, match="replaced by an older copy"):
        spend(ledger, "two")


def test_who_says_so_goes_on_with_what_there_is(ledger: Ledger, spent: Path) -> None:
    shutil.copy(spent, ledger.path)
    note_of(ledger).unlink()
    spend(ledger, "three")
    assert [run.run_id for run in ledger.runs()] == ["one", "three"]


@pytest.mark.parametrize("left", ["", "no numbers", "7"])
def test_a_note_that_cannot_be_read_stops_nobody(ledger: Ledger, spent: Path, left: str) -> None:
    note_of(ledger).write_text(left)
    spend(ledger, "three")
    assert note_of(ledger).read_text() == "2 2"
    assert note_of(ledger).stat().st_mode & 0o077 == 0


def test_a_note_tells_no_more_than_two_numbers(ledger: Ledger, spent: Path) -> None:
    assert note_of(ledger).read_text() == "2 1"


MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:50 / /home rw,relatime shared:1 master:2 - nfs4 server:/home rw,vers=4.2
41 40 8:1 / /home/me/local rw - xfs /dev/sda1 rw
42 27 0:51 / /mnt/with\\040space rw - fuse.sshfs me@there: rw
43 27 0:52 / /mnt/both rw - ext4 /dev/sdb rw
44 27 0:53 / /mnt/both rw - cifs //server/share rw
no line of a mount
"""


@pytest.mark.parametrize(
    "path, kind",
    [
        ("/var/ledger.sqlite", "ext4"),
        ("/home/me/ledger.sqlite", "nfs4"),
        ("/home/me/local/ledger.sqlite", "xfs"),
        ("/home/me/locality/ledger.sqlite", "nfs4"),
        ("/homely/ledger.sqlite", "ext4"),
        ("/mnt/with space/ledger.sqlite", "fuse.sshfs"),
        ("/mnt/both/ledger.sqlite", "cifs"),
    ],
)
def test_a_path_lies_on_the_innermost_mount(path: str, kind: str) -> None:
    assert networks.file_system(Path(path), MOUNTS) == kind
    assert networks.file_system(Path(path), "") is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "ceph", "lustre"])
def test_a_ledger_on_a_network_is_read_and_not_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    spend(ledger, "one")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"27 1 254:0 / / rw - ext4 a rw\n40 27 0:5 / {tmp_path} rw - {kind} b rw\n")
    monkeypatch.setattr(networks, "_MOUNTS_FILE", mounts)
    with pytest.raises(LedgerError, match=rf"network file system \({kind}\).*{networks.ALLOWED}=1"):
        spend(ledger, "two")
    assert len(ledger.runs()) == 1
    monkeypatch.setenv(networks.ALLOWED, "1")
    spend(ledger, "two")


@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs", "9p", "virtiofs", "fuse", "zfs"])
def test_other_file_systems_are_taken_for_local(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"27 1 254:0 / / rw - {kind} a rw\n")
    monkeypatch.setattr(networks, "_MOUNTS_FILE", mounts)
    spend(ledger, "one")

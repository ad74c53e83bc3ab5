"""Refuses ledgers on network file systems, where two machines could both spend the last budget.

SQLite's promise rests on POSIX locks, which many network file systems keep within a machine alone
or not at all. So a ledger there is read, and not written, until its owner says that it is safe.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dphh.errors import LedgerError

#: Set to 1 if locks hold between machines, or if only one machine writes the ledger.
ALLOWED = "DPHH_LEDGER_ON_NETWORK"
#: Names of network file systems in Linux.
_NETWORK_KIND = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|ncpfs|afs|coda|ceph|lustre|gpfs|beegfs|glusterfs|orangefs|pvfs2"
    r"|fuse\.(sshfs|glusterfs|ceph.*|s3fs|gcsfuse|rclone|goofys|blobfuse.*|davfs.*|juicefs|smbnetfs)"
)
_MOUNTS_FILE = Path("/proc/self/mountinfo")


def refuse_network(path: Path) -> None:
    kind = file_system(path)
    if kind is None or _NETWORK_KIND.fullmatch(kind) is None or os.environ.get(ALLOWED) == "1":
        return
    raise LedgerError(
        f"The ledger {path} is on a network file system ({kind}), where two machines may not see "
        "each other's locks, and could both spend the last of a budget. Name a file on a local "
        f"disk with --ledger or DPHH_LEDGER; or set {ALLOWED}=1, if one machine alone writes it "
        "or you know that locks hold between them."
    )


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """The kind of file system that a path lies on; None where the system does not say (not Linux).

    mounts: as proc(5) has `mountinfo`; of two mounts on one folder the later covers the earlier.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS_FILE.read_text(errors="surrogateescape")
        except OSError:
            return None
    found, longest = None, -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = after.split()[0], len(point.parts)
    return found

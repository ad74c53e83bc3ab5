"""Which process works on a run, and whether it is still there.

A run that was killed stays "running" in the ledger, as nothing was left to say otherwise. While it
is unfinished, the ledger has the process's number and start; a number alone may soon be another
process's.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """This process, as the ledger records it."""
    return {**_place(), "pid": os.getpid(), "start": _start_of(os.getpid())}


def is_alive(process: dict[str, Any]) -> bool | None:
    """Whether a recorded process is still there; None if that cannot be seen from here."""
    here = _place()
    if process["host"] != here["host"]:
        return None
    if process["boot"] != here["boot"]:
        return False  # the machine was started again
    if process["namespace"] != here["namespace"]:
        return None  # another container, with its own numbers
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another login's
    start = _start_of(process["pid"])
    return None if start is None or process["start"] is None else start == process["start"]


def _place() -> dict[str, str | None]:
    """Where a process's number means that process. Only Linux names all of it."""
    boot = namespace = None
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return {"host": platform.node(), "boot": boot, "namespace": namespace}


def _start_of(pid: int) -> str | None:
    """When the process began, in ticks since the machine did; "ended" for one that is dead and not
    yet waited for; None where the system does not say."""
    with suppress(OSError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "ended" if state in "ZX" else fields[18]
    return None

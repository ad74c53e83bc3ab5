"""A cache of counted priors, in a folder that only this user may enter.

It holds counts of public texts, and nothing of the private data: what a file is called follows from
the public text and from how it is read. A file that does not spell its own digest is not used.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.files.whole_files import write_whole
from dphh.priors.prior import Prior, PublicGrams
from dphh.public.made import prior_of

#: What the folder may hold; where it would be more, what was used longest ago goes.
MOST_BYTES = 4 * 2**30


def folder() -> Path | None:
    """The folder `DPHH_CACHE`, or `dphh` in this user's cache folder; None if there is none."""
    named = os.environ.get("DPHH_CACHE")
    if named is None:
        variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
        named = os.environ.get(variable, "")
        if not Path(named).is_absolute():  # the XDG rules say to ignore a relative one
            try:
                named = str(Path.home() / ".cache")
            except RuntimeError:
                return None
        named = str(Path(named) / "dphh")
    return Path(named).absolute() / "priors" if named else None


def kept(name: str) -> Prior | None:
    """The cached prior of this name; None if there is none, or if the file cannot be trusted."""
    place = folder()
    if place is None or not _is_private_folder(place):
        return None
    try:
        handle = os.open(place / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(handle, "rb") as file:
            os.utime(file.fileno())  # when it was used last
            return _prior_from_bytes(file.read())
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile, pa.ArrowException):
        return None


def keep(name: str, prior: Prior) -> None:
    """Store a prior in the cache. Errors, such as a full disk, are ignored: it is counted again."""
    place = folder()
    if place is None:
        return
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        if _is_private_folder(place):
            write_whole(place / name, _prior_as_bytes(prior), 0o600)
            _delete_oldest(place)


def _delete_oldest(place: Path) -> None:
    found = [(entry, entry.stat(follow_symlinks=False)) for entry in os.scandir(place)]
    files = [each for each in found if each[0].name.endswith(".npz")]
    held = 0
    for entry, state in sorted(files, key=lambda each: each[1].st_mtime_ns, reverse=True):
        held += state.st_size
        if held > MOST_BYTES:
            Path(entry).unlink()


def _is_private_folder(place: Path) -> bool:
    """Whether this is a folder (not a link) of this user that no other user may enter."""
    try:
        found = place.lstat()
    except OSError:
        return False
    if os.name != "posix":
        return stat.S_ISDIR(found.st_mode)
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and stat.S_IMODE(found.st_mode) & 0o077 == 0
    )


def _prior_as_bytes(prior: Prior) -> bytes:
    words = pa.array(prior.vocabulary, pa.large_binary())
    _, offsets, data = words.buffers()
    arrays: dict[str, Any] = {
        "digest": np.frombuffer(bytes.fromhex(prior.digest), np.uint8),
        "total": np.array([prior.total], np.int64),
        "offsets": np.frombuffer(offsets, np.int64)[: len(words) + 1],
        "data": np.frombuffer(data or b"", np.uint8),
    }
    for length, grams in enumerate(prior.grams, start=1):
        arrays[f"words{length}"], arrays[f"counts{length}"] = grams.words, grams.counts
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _prior_from_bytes(data: bytes) -> Prior | None:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        buffers = [None, pa.py_buffer(found["offsets"]), pa.py_buffer(found["data"])]
        words = pa.Array.from_buffers(pa.large_binary(), len(found["offsets"]) - 1, buffers)
        words.validate(full=True)
        lengths = sum(name.startswith("words") for name in found.files)
        grams = [
            PublicGrams(found[f"words{length}"], found[f"counts{length}"])
            for length in range(1, lengths + 1)
        ]
        prior = prior_of(words.cast(pa.string()), grams, int(found["total"][0]))
        return prior if prior.digest == found["digest"].tobytes().hex() else None

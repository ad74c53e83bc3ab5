"""A cache of counted texts in this user's cache folder.

It holds digests and counts of public texts, and nothing of the private data: what a file is called
follows from the public text's files and from how it is read. A file that does not spell its own
digest is not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.files.paths import files_named, is_remote
from dphh.files.whole_files import write_whole
from dphh.prior import Prior, PublicGrams, prior_of


def folder() -> Path | None:
    """The folder `DPHH_CACHE`, or `dphh` in this user's cache folder; None if there is none."""
    if (named := os.environ.get("DPHH_CACHE")) is not None:
        return Path(named).absolute() / "priors" if named else None
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    caches = Path(os.environ.get(variable, ""))
    if not caches.is_absolute():  # the XDG rules say to ignore a relative one
        try:
            caches = Path.home() / ".cache"
        except RuntimeError:
            return None
    return caches / "dphh" / "priors"


def name_of(text: Corpus, rule: list[Any]) -> str | None:
    """The name under which a text is kept: it follows from its files, from how it is read and from
    the rule by which it is counted. None for what is not in files of this machine, or not in these
    alone: a database, or a table that a log keeps."""
    if text.kind != "path" or any(map(is_remote, text.where)) or any(map(_has_log, text.where)):
        return None
    try:
        files = [(file, Path(file).stat()) for place in text.where for file in files_named(place)]
    except OSError:
        return None
    states = [(file, state.st_size, state.st_mtime_ns) for file, state in files]
    if not states:
        return None
    said = json.dumps([rule, text.content.to_json(), states])
    return f"{hashlib.sha256(said.encode()).hexdigest()}.npz"


def _has_log(place: str) -> bool:
    return any((Path(place) / log).is_dir() for log in ("_delta_log", "metadata"))


def kept(name: str) -> Prior | None:
    """The cached prior of this name; None if there is none, or if it cannot be read."""
    if (place := folder()) is None:
        return None
    try:
        return _from_bytes((place / name).read_bytes())
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile, pa.ArrowException):
        return None


def keep(name: str, prior: Prior) -> None:
    """Store a prior in the cache. Errors, such as a full disk, are ignored: it is counted again."""
    if (place := folder()) is None:
        return
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place / name, _as_bytes(prior), 0o600)


def _as_bytes(prior: Prior) -> bytes:
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


def _from_bytes(data: bytes) -> Prior | None:
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

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
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dphh.corpus import Corpus
from dphh.files.paths import files_named, folder_of_user
from dphh.files.whole_files import write_whole
from dphh.prior import Prior, PublicGrams, prior_of


def folder() -> Path | None:
    """`priors` in the folder `DPHH_CACHE` or in this user's cache folder; None if there is none."""
    if (named := os.environ.get("DPHH_CACHE")) is not None:
        return Path(named).absolute() / "priors" if named else None
    caches = folder_of_user("XDG_CACHE_HOME", ".cache")
    return None if caches is None else caches / "priors"


def name_of(text: Corpus, rule: list[Any]) -> str | None:
    """The name under which a text is kept: it follows from its files, from how it is read and from
    the rule by which it is counted. None for what is not in files of this machine."""
    named = [files_named(place) for place in text.where] if text.kind == "path" else []
    if not all(named) or not named:
        return None
    try:
        states = [(file, Path(file).stat()) for files in named for file in files]
    except OSError:
        return None
    files = [(file, state.st_size, state.st_mtime_ns) for file, state in states]
    said = json.dumps([rule, text.content.to_json(), text.where, files])
    return f"{hashlib.sha256(said.encode()).hexdigest()}.npz"


def kept(name: str) -> Prior | None:
    """The cached prior of this name; None if there is none, or if it cannot be read."""
    if (place := folder()) is None:
        return None
    try:
        with np.load(place / name, allow_pickle=False) as found:
            words = json.loads(found["words"].tobytes())
            lengths = range(1, 1 + sum(each.startswith("grams") for each in found.files))
            grams = [PublicGrams(found[f"grams{n}"], found[f"counts{n}"]) for n in lengths]
            prior = prior_of(pa.array(words, pa.string()), grams, int(found["total"]))
            return prior if prior.digest == str(found["digest"]) else None
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, pa.ArrowException):
        return None


def keep(name: str, prior: Prior) -> None:
    """Store a prior in the cache. Errors, such as a full disk, are ignored: it is counted again."""
    if (place := folder()) is None:
        return
    words = json.dumps(prior.vocabulary.to_pylist()).encode()
    arrays: dict[str, Any] = {"digest": prior.digest, "total": prior.total}
    arrays["words"] = np.frombuffer(words, np.uint8)
    for length, grams in enumerate(prior.grams, start=1):
        arrays[f"grams{length}"], arrays[f"counts{length}"] = grams.words, grams.counts
    file = io.BytesIO()
    np.savez(file, **arrays)
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place / name, file.getvalue(), 0o600)

"""The analysts and the hashes of their tokens, in one file that only the owner may read.

A token is 256 random bits, so its plain SHA-256 reveals nothing about it. What each analyst may
spend is in the ledger, as shares, not here.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from pathlib import Path

from dphh.errors import UsageError
from dphh.files.whole_files import write_whole
from dphh.ledger import Ledger

#: The owner, in a shell of their own, needs no share. No analyst can have this name.
OWNER = "owner"


class OnlyOwner:
    """One token, for a gateway that runs as long as its owner's shell."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)

    def names(self) -> list[str]:
        return [OWNER]

    def who(self, token: str) -> str | None:
        return OWNER if hmac.compare_digest(_hash(token), _hash(self.token)) else None

    def still(self, analyst: str, token: str) -> bool:
        return self.who(token) == analyst


class Analysts:
    """The file of analysts. It is read at each use, so changes take effect at once."""

    def __init__(self, path: Path, ledger: Ledger | None = None) -> None:
        self.path, self._ledger = path, ledger

    @classmethod
    def of(cls, ledger: Ledger) -> Analysts:
        """The file beside the ledger."""
        return cls(ledger.path.with_name(ledger.path.name + ".analysts.json"), ledger)

    def names(self) -> list[str]:
        return list(self._read_hashes())

    def add(self, name: str) -> str:
        """A new token for a new analyst, or for one who lost the old token. It is shown once."""
        self.check_name(name)
        token, before = secrets.token_urlsafe(32), self._read_hashes()
        self._write_hashes({**before, name: _hash(token)})
        self._note_in_history(name, before, "given")
        return token

    def check_name(self, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", name) or name == OWNER:
            raise UsageError(
                f"found the name {name!r}; an analyst's name has up to 64 letters, digits, '_', "
                f"'.', '@' and '-', and is not {OWNER!r}"
            )

    def remove(self, name: str) -> None:
        hashes = self._read_hashes()
        if name not in hashes:
            raise UsageError(f"There is no analyst {name!r}; `dphh serve analysts` lists them")
        before = dict(hashes)
        del hashes[name]
        self._write_hashes(hashes)
        self._note_in_history(name, before, None)

    def _note_in_history(self, name: str, before: dict[str, str], now: str | None) -> None:
        """Note the change in the ledger's history, after the file: a removal must act at once."""
        if self._ledger is not None:
            self._ledger.note_token(name, "given" if name in before else None, now)

    def who(self, token: str) -> str | None:
        """The analyst with this token, or None."""
        asked = _hash(token)
        found = None
        for (
            name,
            known,
        ) in self._read_hashes().items():  # compare all, so that timing reveals nothing
            if hmac.compare_digest(asked, known):
                found = name
        return found

    def still(self, analyst: str, token: str) -> bool:
        """Whether a run that this token started may continue."""
        return self.who(token) == analyst

    def _read_hashes(self) -> dict[str, str]:
        try:
            if self.path.stat().st_mode & 0o077:
                raise UsageError(f"{self.path} can be read by other users; chmod 600 it first")
            found: dict[str, str] = json.loads(self.path.read_text(encoding="utf-8"))["tokens"]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(f"{self.path} is not a file of analysts; restore it") from None
        return found

    def _write_hashes(self, hashes: dict[str, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({"tokens": hashes}, indent=2) + "\n"
        write_whole(self.path, text.encode(), mode=0o600)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

"""An array that grows at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike


class Growing:
    """Its room grows where it stands, as far as the system can: a large one is not copied."""

    def __init__(self, kind: DTypeLike) -> None:
        self._room = np.empty(1 << 10, dtype=kind)
        self._count = 0

    def add(self, values: Any) -> None:
        end = self._count + len(values)
        if end > len(self._room):
            self._room.resize(max(end, len(self._room) * 5 // 4), refcheck=False)
        self._room[self._count : end] = values
        self._count = end

    def all(self) -> Any:
        """A view, for as long as nothing is added."""
        return self._room[: self._count]

    def __len__(self) -> int:
        return self._count

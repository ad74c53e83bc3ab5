"""The table `positions` of a host: at which positions of users' texts the valid grams of a level
are."""

from __future__ import annotations

from dphh.engines.host import Host, Lookup
from dphh.level import Level
from dphh.mechanisms.ngrams.ladder.rungs import Ladder
from dphh.udfs.kernel.positions import KeyIndex
from dphh.udfs.kernel.words import indices_by_word


class PositionsTable:
    """Updates the table `positions` rung by rung. A continued run does not ask for levels that it
    drew before, so one update may have to process several rungs."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._rungs_done = 0

    def update_positions(self, ladder: Ladder) -> None:
        """Bring the table `positions` up to the ladder's top rung."""
        for rung in ladder.rungs[self._rungs_done :]:
            if rung.level == 1:
                released = Lookup(indices_by_word(ladder.vocabulary))
                self.host.run("positions_of_words", released=released)
                self.host.drop("users")
            else:
                self.host.run("positions_of_grams", released=Lookup(KeyIndex(rung.keys)))
            # next_positions (user_hashes, lengths, keys)
            self.host.rename_replacing("next_positions", "positions")
            self._rungs_done = rung.level


def positions_steps(level: Level) -> tuple[str, str]:
    """What `update_positions` asks for this level."""
    pieces = "words" if level.level == 2 else "grams"
    return f"positions_of_{pieces}", "ALTER TABLE next_positions RENAME TO positions;"

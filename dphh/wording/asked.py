"""Options that are asked for by name: what is unknown is told with the nearest name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from inspect import Parameter

from dphh.errors import UsageError


def check_known(given: Collection[str], known: Collection[str], what: str) -> None:
    """Every given option is one of the known."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(f"{name}: {what} has no such option; {meant}It has {', '.join(known)}")


def check_whole(given: Collection[str], options: Mapping[str, Parameter], what: str) -> None:
    """Every option without a default is given."""
    lacking = [
        name
        for name, option in options.items()
        if option.default is Parameter.empty and name not in given
    ]
    if lacking:
        raise UsageError(f"{', '.join(lacking)}: {what} needs a value for each; say {lacking[0]}=")

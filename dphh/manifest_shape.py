"""The shape of what a run writes into a manifest: the types and ranges of values that can be read.
A release that somebody sent is compared with it before anything else is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from dphh.privacy.counts import MOST_KEYS
from dphh.privacy.set_union import LARGEST_GRID_SIGMA
from dphh.udfs.noise.table import LARGEST_TABLE_SIGMA

#: A test of a value; a list of values that all have one shape; or an object's fields by name. A
#: name that ends in "?" is of a field that may be missing. Other fields may be there.
Shape = Callable[[Any], bool] | list[Any] | Mapping[str, Any]


def misfit(value: Any, shape: Shape, name: str = "the manifest") -> str | None:
    """What keeps a value from having a shape, in words; None if it has it."""
    if callable(shape):
        return None if shape(value) else f"{name} has a value of another type or range"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{name} is not a list"
        parts = [(each, shape[0], name) for each in value]
    else:
        if not isinstance(value, dict):
            return f"{name} is not an object"
        parts = []
        for field, inner in shape.items():
            if field.rstrip("?") in value:
                parts.append((value[field.rstrip("?")], inner, f"its field {field.rstrip('?')!r}"))
            elif not field.endswith("?"):
                return f"{name} lacks the field {field!r}"
    return next(filter(None, (misfit(*part) for part in parts)), None)


def is_plain_json(manifest: Any) -> bool:
    """Whether all texts can be written as UTF-8, and all numbers as JSON: a lone surrogate and a
    NaN cannot."""
    try:
        json.dumps(manifest, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def is_null(value: Any) -> bool:
    return value is None


def is_amount(value: Any) -> bool:
    """Whether it is a number from 0 to 2^63."""
    return type(value) in (int, float) and 0 <= value <= 2**63


def is_whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def any_of(*shapes: Shape) -> Callable[[Any], bool]:
    return lambda value: any(misfit(value, shape) is None for shape in shapes)


def one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: is_text(value) and value in values


def is_like(pattern: str) -> Callable[[Any], bool]:
    return lambda value: is_text(value) and re.fullmatch(pattern, value) is not None


def values_of(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


_COUNT = is_whole(0, 2**53)
_VERSION = is_like(r"[\w.+-]{1,40}")

_WHOLE = is_whole(-(2**53), 2**53)
#: What a run decides, of a level or of how it counts what it found.
_DECIDED: dict[str, Shape] = {
    "round?": is_whole(1, 1_000),
    "max_items?": is_whole(1, 2**53),
    "within_purses?": is_whole(1, 2**53),
    "grid_bits?": is_whole(0, 60),
    "sigma_grid?": is_whole(1, LARGEST_TABLE_SIGMA),
    "threshold_grid?": _WHOLE,
    "valid?": _COUNT,
    "spurious_words?": is_amount,
    "relative_sigma?": lambda value: is_amount(value) and 0 < value <= LARGEST_GRID_SIGMA,
    "lost_grid?": [_WHOLE],
    "rough_grid?": [_WHOLE],
    "held_grid?": [_WHOLE],
    "families?": [
        {
            "counted": _COUNT,
            "kept": _COUNT,
            "length": any_of(_COUNT, is_null),
            "group": any_of(is_text, is_null),
        }
    ],
}


def _counts(length: int) -> Callable[[Any], bool]:
    return lambda value: misfit(value, [_COUNT]) is None and len(value) == length


#: What a page reads, of whatever version made the release.
_PRIVACY: Shape = {
    "epsilon": is_amount,
    "delta": lambda value: is_amount(value) and 0 < value < 1,
    "unit": is_text,
    "adjacency": is_text,
    "theorem": is_text,
    "delta_shares": values_of(is_amount),
    "caveats": is_texts,
    "warnings?": is_texts,
    "central_epsilon?": is_amount,
    "user_epsilon?": is_amount,
    "shuffled_epsilon?": is_amount,
    "shuffled_user_epsilon?": is_amount,
    "protects": one_of("user", "combination", "contribution"),
    "provided?": is_text,
}
_PARAMETERS: Shape = {
    "user": any_of(is_text, is_texts),
    "content": {},
    "by?": any_of(is_text, is_null),
    "groups?": is_texts,
    "min_users?": any_of(_COUNT, is_null),
    "of?": [is_texts],
    "domain?": [is_texts],
}
MANIFEST: Shape = {
    "verb": is_text,
    "run_id": is_text,
    "day": is_like(r"\d{4}-\d\d-\d\d"),
    "is_test": is_truth,
    "method": is_text,
    "parameters": _PARAMETERS,
    "privacy": _PRIVACY,
    "finds": {
        "what": is_text,
        "probability": is_amount,
        "users": _COUNT,
        "users_by_length": [_counts(2)],
        "users_of_many?": _counts(3),
    },
    "events": [values_of(any_of(is_text, is_amount))],
    "levels": [{"level": is_whole(1, 2**31 - 1), "kind": is_text, "released": _COUNT, **_DECIDED}],
    "counting?": {"counted": is_whole(0, MOST_KEYS), **_DECIDED},
    "prior?": {"words": _COUNT, "digest": is_text, "run_id?": is_text},
    "engine": {"name": is_text, "version": _VERSION},
    "versions": {"dphh": _VERSION, "python": _VERSION, "pyarrow": _VERSION},
}

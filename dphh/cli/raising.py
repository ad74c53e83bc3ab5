"""Raising a cap or a share asks for confirmation first: what is spent of it is never taken back."""

from __future__ import annotations

import sys

import click

from dphh.errors import UsageError
from dphh.ledger.budget import Cap


def describe_raise(cap: Cap | None, epsilon: float, delta: float) -> str:
    """The old and the new cap as text if the cap is raised, else ''."""
    if cap is None or (epsilon <= cap.epsilon and delta <= cap.delta):
        return ""
    return f"({cap.epsilon:g}, {cap.delta:g}) to ({epsilon:g}, {delta:g})"


def confirm(question: str) -> None:
    """Ask for confirmation. Without a terminal it refuses, and names the option that confirms."""
    if not sys.stdin.isatty():
        raise UsageError(f"{question}. Nothing was changed; --yes says yes")
    if not click.confirm(question, err=True):
        raise UsageError("Nothing was changed")

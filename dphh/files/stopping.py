"""Signals that end a process end its runs first: no private row stays behind on the disk.

Ctrl-C, SIGTERM (a container that stops) and SIGHUP (a terminal that closes) reach a run as an
exception, so that everything is closed as after any error. An engine may be deep in its own code
and come back late, or never: then a thread removes the process's private folders and ends it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dphh.files import private_folder

#: Seconds from a signal to the end, at the latest: less than the ten that a container is given.
PATIENCE = 6.0
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")

#: Signals that have asked this process to end, the first first.
_heard: list[int] = []


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""


def received() -> int | None:
    """The signal that has asked this process to end, whatever became of its exception."""
    return _heard[0] if _heard else None


@contextmanager
def stopping() -> Iterator[None]:
    """While this lasts, a signal that ends the process raises `Stopped` in its main thread.

    Signals that somebody ignores (`nohup`) or handles already stay theirs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    _heard.clear()
    theirs = {
        number: before
        for name in _ENDING
        if (number := getattr(signal, name, None)) is not None
        and (before := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)
    }
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    done = threading.Event()
    threading.Thread(
        target=_end_at_last, args=(reading, frozenset(theirs), done), daemon=True
    ).start()
    for number in theirs:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        done.set()
        for number, before in theirs.items():
            if not _heard:  # else the end has begun, and another signal must not cut it short
                signal.signal(number, before)
        signal.set_wakeup_fd(wakeup)
        os.close(writing)


def end_by(number: int) -> None:
    """End as if the signal had: what shells and supervisors go by. Nothing returns from here."""
    private_folder.close_all()  # Python's own end, which would, does not come
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container does not die of signals


def _stop(number: int, _: FrameType | None) -> None:
    """The first raises; those that follow would only cut short what it began."""
    _heard.append(number)
    if len(_heard) == 1:
        raise Stopped


def _end_at_last(reading: int, numbers: frozenset[int], done: threading.Event) -> None:
    """Wait for a signal; if the main thread has not come back by then, clean up in its place."""
    with os.fdopen(reading, "rb", buffering=0) as signals:
        while came := signals.read(1):
            ours = came[0] in numbers and signal.getsignal(came[0]) is _stop
            if ours and not done.wait(PATIENCE):
                private_folder.close_all()
                os._exit(128 + came[0])

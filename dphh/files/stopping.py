"""A signal that ends the process ends its runs first, so that no private row stays on the disk.

Ctrl-C, SIGTERM (a container that stops) and SIGHUP (a terminal that closes) raise an exception in
the run, so that everything is closed as after any error. An engine may be inside native code and
return late or never. In that case a thread removes the process's private folders, says the last
words for programs, and ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from dphh.files import private_folder

#: The process is ended at the latest so many seconds after a signal. Containers are given ten.
PATIENCE_SECONDS = 6.0
_ENDING_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)

#: The numbers of the signals that asked this process to end, in order of arrival.
_received_signals: list[int] = []


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""


def received_signal() -> int | None:
    """The first signal that asked this process to end, even if its exception was swallowed."""
    return _received_signals[0] if _received_signals else None


@contextmanager
def stopping(last_words: Callable[[int], str] = lambda _: "") -> Iterator[None]:
    """While active, a signal that ends the process raises `Stopped` in its main thread.

    Signals that the caller ignores (`nohup`) or handles are left alone. `last_words`: what standard
    output gets, by the signal's number, if the main thread does not come back in time.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return
    _received_signals.clear()
    theirs = {
        number: before
        for number in _ENDING_SIGNALS
        if (before := signal.getsignal(number)) in (signal.SIG_DFL, signal.default_int_handler)
    }
    reading, writing = socket.socketpair()  # no pipe: Windows lets none be without blocking
    writing.setblocking(False)
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    done = threading.Event()
    threading.Thread(
        target=_end_after_patience,
        args=(reading, frozenset(theirs), done, last_words),
        daemon=True,
    ).start()
    for number in theirs:
        signal.signal(number, _raise_stopped)
    try:
        yield
    finally:
        done.set()
        if not _received_signals:  # another signal must not cut the process's end short
            for number, before in theirs.items():
                signal.signal(number, before)
        signal.set_wakeup_fd(wakeup)
        writing.close()


def end_by_signal(number: int) -> None:
    """End the process as that signal would, since shells and supervisors look at how it ended."""
    private_folder.close_all()  # Python's exit handlers will not run
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # the first process of a container ignores signals, and gets here


def _raise_stopped(number: int, _: FrameType | None) -> None:
    """Raise on the first signal; later ones must not interrupt the cleaning up."""
    _received_signals.append(number)
    if len(_received_signals) == 1:
        raise Stopped


def _end_after_patience(
    signals: socket.socket,
    handled: frozenset[int],
    main_is_done: threading.Event,
    last_words: Callable[[int], str],
) -> None:
    """Wait for a signal; if the main thread is not done in time, clean up and end the process."""
    with signals:
        while came := signals.recv(1):
            ours = came[0] in handled and signal.getsignal(came[0]) is _raise_stopped
            if ours and not main_is_done.wait(PATIENCE_SECONDS):
                try:
                    private_folder.close_all()
                    said = last_words(came[0]).encode()
                    # Not by sys.stdout, which the main thread may hold; and a pipe that is full,
                    # because nobody reads it, must not keep the process. (Windows cannot tell.)
                    if said and select.select([], [1], [], 0)[1]:
                        os.write(1, said)
                finally:
                    os._exit(128 + came[0])

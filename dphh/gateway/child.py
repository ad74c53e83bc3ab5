"""A child process and the pipe to it. Messages are JSON and Arrow, which cannot carry code."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphh.asking.without_pandas import leave_pandas_out
from dphh.files.private_folder import PrivateFolder, close_all, remove_if_left
from dphh.udfs.text.arrow_bytes import packed, unpacked

Message = dict[str, Any]

#: Environment variables that a child inherits: neither the ledger's path nor any password.
_INHERITED_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT")

#: How long a child may leave a message unread before it counts as gone.
_SEND_TIMEOUT = struct.pack("@ll", 60, 0)


class Gone(Exception):  # noqa: N818 - the end may have been requested
    """The process at the other end has ended."""


class Pipe:
    """One end of a pipe. Each message may come with a table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, message: Message, table: pa.Table | bytes | None = None) -> None:
        """Send a message, with a table as an Arrow table or already packed, or without one."""
        try:
            self._connection.send_bytes(json.dumps([message, table is not None]).encode())
            if table is not None:
                self._connection.send_bytes(table if isinstance(table, bytes) else packed(table))
        except OSError:
            raise Gone from None

    def receive(self) -> tuple[Message, pa.Table | None]:
        message, table = self.receive_packed()
        return message, None if table is None else unpacked(table)

    def receive_packed(self) -> tuple[Message, bytes | None]:
        """Like `receive`, but leaves the table packed, for callers that only pass it on."""
        try:
            message, with_table = json.loads(self._connection.recv_bytes())
            return message, self._connection.recv_bytes() if with_table else None
        except (EOFError, OSError):
            raise Gone from None

    def waits(self, seconds: float) -> bool:
        """Whether a message or the end of the pipe arrives within this many seconds."""
        try:
            return self._connection.poll(max(seconds, 0.0))
        except OSError:
            return True

    def close(self) -> None:
        self._connection.close()


class Child:
    """A Python process that runs one module of the gateway, in its own empty folder."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._folder = PrivateFolder()
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SEND_TIMEOUT)
        environment = {
            name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ
        }
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
                pass_fds=[theirs.fileno()],
                cwd=self._folder.path,
                env={**environment, "TMPDIR": self._folder.path, "HOME": self._folder.path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # the gateway, not the terminal, decides on Ctrl-C
            )
        self.pipe = Pipe(Connection(ours.detach()))

    def alive(self) -> bool:
        return self._process.poll() is None

    def end(self, patience: float = 0.0) -> None:
        """Interrupt the process so that it cleans up; after `patience` seconds, kill it."""
        with suppress(ProcessLookupError):
            if patience:
                self._process.send_signal(signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and remove its folder."""
        self.end()
        self.pipe.close()
        self._folder.close()


def serve(handle: Callable[[Pipe, Message, pa.Table | None], None]) -> None:
    """The child's main loop: handle each message until the other end is gone."""
    leave_pandas_out()
    pipe, parent = Pipe(Connection(int(sys.argv[1]))), os.getppid()
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    try:
        while True:
            handle(pipe, *pipe.receive())
    except Gone:
        _wait_for_end_of(parent)
    except KeyboardInterrupt:
        pass
    remove_if_left(Path.cwd())  # the parent may have been killed before it could


def _wait_for_end_of(parent: int, seconds: float = 5.0) -> None:
    """Wait for the parent to end: a killed process loses its pipes just before its locks, and the
    locks tell whether its folder is still in use."""
    until = time.monotonic() + seconds
    while os.getppid() == parent and time.monotonic() < until:
        time.sleep(0.01)


def _end_with_parent(parent: int) -> None:
    """End this process when the gateway was killed, so that no run continues unnoticed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGINT)  # lets it remove its spill files
    time.sleep(5.0)
    close_all()
    remove_if_left(Path.cwd())
    os._exit(1)

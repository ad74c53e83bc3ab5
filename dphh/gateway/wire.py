"""The four quack messages that a client needs: connect, prepare a statement, fetch, disconnect.

A message is two objects of DuckDB's binary serialisation, a head and a body. Their fields are in
the order of their two-byte numbers, and each object ends with 0xffff. Integers are in groups of
seven bits; texts begin with their length. A client's message is parsed by this grammar to its last
byte or refused, and none of its bytes is passed on. So quack, which parses a message before it
checks who sent it, sees only messages that were written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dphh.errors import UsageError

#: The longest message of a client, and how much of an answer `session_of` reads.
MOST_BYTES = 1 << 20

_CONNECT, _CONNECTED, _PREPARE, _FETCH, _DONE, _DISCONNECT, _ERROR = 1, 2, 3, 7, 10, 11, 100
_END_OF_FIELDS = b"\xff\xff"
_NOT_GIVEN = (1 << 64) - 1  # stands for a number that is not given
_MOST_TOKEN = 16 << 10


class Malformed(UsageError):  # noqa: N818 - describes the message
    """Not one of the four messages, or not in the form in which a client writes them."""


@dataclass(frozen=True)
class Connect:
    """Opens a session with a token."""

    token: str = field(repr=False)
    query: int = _NOT_GIVEN


@dataclass(frozen=True)
class Prepare:
    """Asks for the result of one SQL statement."""

    session: str
    statement: str
    query: int = _NOT_GIVEN


@dataclass(frozen=True)
class Fetch:
    """Asks for more rows of a result."""

    session: str
    result: tuple[int, int]  # a 128-bit number: its upper half, signed, and its lower half
    query: int = _NOT_GIVEN


@dataclass(frozen=True)
class Disconnect:
    """Ends a session."""

    session: str


Message = Connect | Prepare | Fetch | Disconnect


# Messages of clients


def read(data: bytes) -> Message:
    """The message, if it is one of the four; anything else is refused."""
    if len(data) > MOST_BYTES:
        raise Malformed("The message is too long")
    reader = _Reader(data)
    kind = reader.number() if reader.is_field(1) else 0
    if kind not in (_CONNECT, _PREPARE, _FETCH, _DISCONNECT):
        raise Malformed("The gateway does not support this message: it only runs queries")
    session = reader.text(64) if reader.is_field(2) else ""
    query = reader.number() if reader.is_field(3) else _NOT_GIVEN
    reader.end()
    message = _read_body(reader, kind, session, query)
    reader.end()
    if reader.rest():
        raise Malformed("The message has bytes after its end")
    return message


def _read_body(reader: _Reader, kind: int, session: str, query: int) -> Message:
    if kind == _CONNECT:
        token = reader.text(_MOST_TOKEN) if reader.is_field(1) else ""
        # DuckDB's version and platform, and the oldest and newest protocol that it speaks.
        for number, reads in ((2, "text"), (3, "text"), (4, "number"), (5, "number")):
            if reader.is_field(number):
                reader.text(256) if reads == "text" else reader.number()
        return Connect(token, query)
    if kind == _PREPARE:
        return Prepare(session, reader.text(MOST_BYTES) if reader.is_field(1) else "", query)
    if kind == _FETCH:
        upper, lower = (reader.signed(), reader.number()) if reader.is_field(1) else (0, 0)
        return Fetch(session, (upper, lower), query)
    return Disconnect(session)


class _Reader:
    """Reads fields of a quack message from its bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def is_field(self, number: int) -> bool:
        """Whether the next field has this number; if so, moves on to its value."""
        found = self._data[self._at : self._at + 2] == number.to_bytes(2, "little")
        self._at += 2 * found
        return found

    def end(self) -> None:
        if self._take_bytes(2) != _END_OF_FIELDS:
            raise Malformed("The message is not in the form that a DuckDB client writes")

    def number(self) -> int:
        """An integer in groups of seven bits, lowest first; at most 64 bits."""
        found = 0
        for shift in range(0, 70, 7):
            byte = self._take_bytes(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                if found > _NOT_GIVEN:
                    break
                return found
        raise Malformed("A number of the message is too large")

    def signed(self) -> int:
        found = 0
        for shift in range(0, 70, 7):
            byte = self._take_bytes(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                found -= (byte >> 6) << (shift + 7)
                if not -(1 << 63) <= found < 1 << 63:
                    break
                return found
        raise Malformed("A number of the message is too large")

    def text(self, most: int) -> str:
        length = self.number()
        if length > most:
            raise Malformed("A text of the message is too long")
        try:
            return self._take_bytes(length).decode()
        except UnicodeDecodeError:
            raise Malformed("A text of the message is not UTF-8") from None

    def rest(self) -> int:
        return len(self._data) - self._at

    def _take_bytes(self, length: int) -> bytes:
        if self.rest() < length:
            raise Malformed("The message is incomplete")
        self._at += length
        return self._data[self._at - length : self._at]


# Messages to quack, and answers that the gateway sends to clients itself


def written(message: Message) -> bytes:
    match message:
        case Connect():
            body = (_text_bytes(message.token), _VERSION, b"", _number_bytes(1), _number_bytes(1))
            return _message_bytes(_CONNECT, "", message.query, *body)
        case Prepare():
            asked = _text_bytes(message.statement)
            return _message_bytes(_PREPARE, message.session, message.query, asked)
        case Fetch():
            upper, lower = message.result
            result = _signed_bytes(upper) + _number_bytes(lower)
            return _message_bytes(_FETCH, message.session, message.query, result)
        case Disconnect():
            return _message_bytes(_DISCONNECT, message.session)


def connected(session: str) -> bytes:
    body = _VERSION, _text_bytes("dphh"), _number_bytes(1)
    return _message_bytes(_CONNECTED, session, _NOT_GIVEN, *body)


def disconnected() -> bytes:
    return _message_bytes(_DONE)


def refused(why: str) -> bytes:
    return _message_bytes(_ERROR, "", _NOT_GIVEN, _text_bytes(why))


def session_of(answer: bytes) -> str:
    """The session in quack's answer to a connect message."""
    reader = _Reader(answer[:MOST_BYTES])
    if not (reader.is_field(1) and reader.number() == _CONNECTED and reader.is_field(2)):
        raise Malformed("The server gave no session")
    return reader.text(64)


def _message_bytes(kind: int, session: str = "", query: int = _NOT_GIVEN, *body: bytes) -> bytes:
    """A head, and a body of these fields; an empty one is left out."""
    named = _text_bytes(session) if session else b""
    head = _fields_bytes(_number_bytes(kind), named, _number_bytes(query))
    return head + _fields_bytes(*body)


def _fields_bytes(*fields: bytes) -> bytes:
    numbered = (
        number.to_bytes(2, "little") + each for number, each in enumerate(fields, 1) if each
    )
    return b"".join(numbered) + _END_OF_FIELDS


def _number_bytes(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _signed_bytes(value: int) -> bytes:
    found = bytearray()
    while not -64 <= value < 64:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value & 0x7F])


def _text_bytes(value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return _number_bytes(len(data)) + data


#: The version of DuckDB that the gateway says it is.
_VERSION = _text_bytes("v1.5.5")

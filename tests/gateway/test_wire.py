"""The messages that a client needs, read by their grammar: all others go no further."""

from __future__ import annotations

import random
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.gateway import wire
from dphh.gateway.wire import Connect, Disconnect, Fetch, Malformed, Prepare, read, written

SESSION = "BD6A15B6928EF00E0C8B9AD22D273B32"
_HEAD = b"\x02\x00 " + SESSION.encode()

#: As DuckDB 1.5.5 writes them, kept byte for byte.
SENT = {
    b"\x01\x00\x01\x03\x00\x06\xff\xff\x01\x00\x03abc\x02\x00\x06v1.5.5\x03\x00\x0blinux_amd64"
    b"\x04\x00\x01\x05\x00\x01\xff\xff": Connect("abc", 6),
    b"\x01\x00\x03" + _HEAD + b"\x03\x00\x07\xff\xff\x01\x00\x0bSELECT 41+1\xff\xff": Prepare(
        SESSION, "SELECT 41+1", 7
    ),
    b"\x01\x00\x07" + _HEAD + b"\x03\x00\x09\xff\xff\x01\x00\xf9\x90\xa9\xaa\xac\xa1\xb7\xc6\x95"
    b"\x7f\xb5\xc4\xe9\xca\xca\xa7\x8f\xe4\x8b\x01\xff\xff": Fetch(
        SESSION, (-7670513026989406087, 10072367897362719285), 9
    ),
    b"\x01\x00\x0b" + _HEAD + b"\x03\x00" + b"\xff" * 9 + b"\x01\xff\xff\xff\xff": Disconnect(
        SESSION
    ),
}

messages = st.one_of(
    st.builds(Connect, st.text(max_size=60), st.integers(0, 2**64 - 1)),
    st.builds(Prepare, st.text("ABCDEF01", max_size=32), st.text(), st.integers(0, 2**64 - 1)),
    st.builds(
        Fetch,
        st.just(SESSION),
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1)),
    ),
    st.builds(Disconnect, st.just(SESSION)),
)


def test_what_a_client_sends_is_read() -> None:
    for sent, message in SENT.items():
        assert read(sent) == message
        if not isinstance(message, Connect):  # which tells more of itself than is passed on
            assert written(message) == sent


@given(messages)
def test_what_is_written_is_read_back(message: wire.Message) -> None:
    if isinstance(message, Prepare | Fetch) and not message.session:
        return
    assert read(written(message)) == message


def test_other_messages_are_refused_unread() -> None:
    for kind in set(range(256)) - {1, 3, 7, 11}:
        with pytest.raises(
            Malformed, match=r"does not support this message|too large|incomplete|not in the form"
        ):
            read(
                b"\x01\x00" + bytes([kind]) + _HEAD + b"\x03\x00\x07\xff\xff" + b"\x01\x00\x00" * 9
            )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xff",
        b"\x01\x00\x03",
        b"\x01\x00\x03" + _HEAD + b"\x03\x00\x07\xff\xff\x01\x00\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x01\x00\x03" + _HEAD + b"\x03\x00" + b"\xff" * 11 + b"\xff\xff\xff\xff",
        b"\x01\x00\x03\x02\x00" + b"\xf0\xff\xff\x0f" + b"x" * 90,
        b"\x01\x00\x03" + _HEAD + b"\xff\xff\x01\x00\x02\xc3(\xff\xff",  # not UTF-8
        *(sent + b"\x00" for sent in SENT),
        *(sent[:cut] for sent in SENT for cut in range(len(sent))),
    ],
)
def test_broken_messages_are_refused(message: bytes) -> None:
    with pytest.raises(Malformed):
        read(message)


def test_bent_messages_are_read_or_refused() -> None:
    """A fixed number, of a new seed each time; whatever is read is written anew as itself."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(3_000):
        sent = bytearray(chance.choice(list(SENT)))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(sent))
            match chance.randrange(3):
                case 0:
                    sent[at] = chance.randrange(256)
                case 1:
                    sent[at:at] = chance.randbytes(chance.randint(1, 12))
                case _:
                    del sent[at : at + chance.randint(1, 8)]
            sent = sent or bytearray(b"\0")
        try:
            message = read(bytes(sent))
        except Malformed as problem:
            assert str(problem)
        else:
            assert read(written(message)) == message


def test_a_message_as_long_as_may_be_is_read_and_no_longer() -> None:
    most = Prepare(SESSION, "x" * (wire.MOST_BYTES - 60))
    assert read(written(most)) == most
    with pytest.raises(Malformed, match="too long"):
        read(b"\0" * (wire.MOST_BYTES + 1))

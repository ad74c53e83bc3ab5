"""TrieHH as it was meant: devices vote, round by round, and there is no corpus.

The coordinator opens a collection, hands each round's broadcast to the devices, closes the round
with the votes that came in, and at last settles the release. The two sides share files alone
(docs/federated.md).
"""

from dphh.devices.votes.collection import Collection, Received
from dphh.devices.votes.device import Broadcast, one_sequence, read_broadcast, vote
from dphh.devices.votes.simulated import votes_of_corpus

__all__ = [
    "Broadcast",
    "Collection",
    "Received",
    "one_sequence",
    "read_broadcast",
    "vote",
    "votes_of_corpus",
]

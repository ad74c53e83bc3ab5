"""Federated TrieHH: devices vote, round by round, and there is no corpus.

The coordinator opens a collection, gives each round's ballot to the devices, closes the round with
the votes that it received, and finally settles the release. The two sides share only files
(docs/federated.md).
"""

from dphh.devices.votes.collection import Collection, Received
from dphh.devices.votes.device import Ballot, one_sequence, read_ballot, vote
from dphh.devices.votes.simulated import votes_of_corpus

__all__ = [
    "Ballot",
    "Collection",
    "Received",
    "one_sequence",
    "read_ballot",
    "vote",
    "votes_of_corpus",
]

"""Federated TrieHH: devices vote, round by round, and there is no corpus.

The coordinator opens a collection, gives each round's ballot to the devices, closes the round with
the votes that it received, and finally settles the release. The two sides share only files
(docs/federated.md).
"""

from dphh.collecting.collection import Collection, Received
from dphh.collecting.simulated import votes_of_corpus
from dphh.devices.votes import Ballot, one_sequence, read_ballot, vote

__all__ = [
    "Ballot",
    "Collection",
    "Received",
    "one_sequence",
    "read_ballot",
    "vote",
    "votes_of_corpus",
]

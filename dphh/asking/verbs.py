"""The public verbs: functions of a corpus that price a run for free."""

from __future__ import annotations

from dphh.plan import verb_function
from dphh.registry import COUNTS, ITEMS, LDP_TRIE, NGRAMS, TRIE

items = verb_function(ITEMS)
ngrams = verb_function(NGRAMS)
trie = verb_function(TRIE)
ldp_trie = verb_function(LDP_TRIE)
counts = verb_function(COUNTS)

"""TrieHH: sequences grown level by level from sampled votes."""

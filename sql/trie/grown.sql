-- The prefixes that the trie gains (TrieHH, the last line of Algorithm 2): those with at least
-- $theta votes. Vote counts are not released.
SELECT node, token, ended
FROM votes
WHERE votes >= $theta
ORDER BY node, ended, token;

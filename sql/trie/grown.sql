-- The prefixes that the trie gains (TrieHH, Algorithm 2, its last line): those with at least $theta
-- votes. Vote counts are not released.
SELECT node, token, ended
FROM votes
WHERE votes >= $theta
ORDER BY node, ended, token;

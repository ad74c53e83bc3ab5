-- The prefixes that grow on the trie: those with at least $theta votes. The votes stay behind.
SELECT
    node,
    token,
    ended
FROM votes
WHERE votes >= $theta
ORDER BY node, ended, token;

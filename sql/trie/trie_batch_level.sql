-- TrieHH, one level as in the papers (Algorithms 1 and 2): $batch users, sampled without
-- replacement, vote for the prefix of $level tokens of their sequence if the prefix one token
-- shorter is in the trie. $idle users without a sequence are sampled alike, and do not vote.
-- In: one_each (user_id, tokens); trie (node, tokens), the prefixes of the level below.
-- Out: votes (node, token, ended, votes).
CREATE TEMP TABLE votes AS
WITH

everyone AS (
    SELECT
        user_id AS name,
        tokens
    FROM one_each
    UNION ALL
    SELECT
        chr(31) || range AS name,
        NULL AS tokens
    FROM range($idle)
),

draws AS MATERIALIZED (
    SELECT
        tokens,
        dphh_word(name, $purpose) AS draw
    FROM everyone
),

batch AS (
    SELECT tokens
    FROM draws
    ORDER BY draw
    LIMIT $batch
),

next_prefixes AS (
    SELECT
        trie.node,
        batch.tokens[$level] AS token,
        len(batch.tokens) < $level AS ended
    FROM batch
    INNER JOIN trie ON list_slice(batch.tokens, 1, $level - 1) = trie.tokens
)

SELECT
    node,
    token,
    ended,
    count(*) AS votes
FROM next_prefixes
GROUP BY node, token, ended;

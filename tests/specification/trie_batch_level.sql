-- TrieHH, one level as in the papers (Zhu et al. 2020, Algorithms 1 and 2): $drawn_users of all
-- users ($idle of whom have no sequence) are drawn without replacement. Each votes for the prefix
-- of $level tokens of their sequence, if its prefix of $level - 1 tokens is in the trie.
-- In: one_sequence_each (user_id, tokens); trie (level, tokens, ended). Out: new rows of trie.
INSERT INTO trie
WITH

everyone AS (
    SELECT user_id AS name, tokens
    FROM one_sequence_each
    UNION ALL
    SELECT chr(31) || range AS name, NULL AS tokens
    FROM range($idle)
),

draws AS MATERIALIZED (
    SELECT tokens, dphh_word(name, $purpose) AS draw
    FROM everyone
),

batch AS (
    SELECT tokens
    FROM draws
    ORDER BY draw
    LIMIT $drawn_users
),

nodes AS (
    SELECT tokens
    FROM trie
    WHERE level = $level - 1 AND NOT ended
),

votes AS (
    SELECT
        list_slice(batch.tokens, 1, $level) AS prefix,
        len(batch.tokens) < $level AS ended,
        count(*) AS votes
    FROM batch
    INNER JOIN nodes ON list_slice(batch.tokens, 1, $level - 1) = nodes.tokens
    GROUP BY ALL
)

SELECT CAST($level AS INTEGER) AS level, prefix AS tokens, ended
FROM votes
WHERE votes >= $theta;

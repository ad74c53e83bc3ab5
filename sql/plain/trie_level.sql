-- TrieHH, one level (Zhu et al. 2020, Algorithms 1 and 2), every user being sampled by a coin of
-- their own: who holds a prefix of the trie votes for the one that is longer by a token. The end of
-- a sequence is a token of its own kind.
-- In: one_each (user_id, tokens); trie (level, tokens, ended). Out: more of trie.
INSERT INTO trie
WITH

nodes AS (
    SELECT
        tokens,
        row_number() OVER (ORDER BY tokens) - 1 AS node
    FROM trie
    WHERE level = $level - 1 AND NOT ended
),

-- Whose sequence begins with a prefix that is in the trie; and with what it goes on.
next_prefixes AS (
    SELECT
        one_each.user_id,
        list_slice(one_each.tokens, 1, $level) AS prefix,
        len(one_each.tokens) < $level AS ended,
        nodes.node
    FROM one_each
    INNER JOIN nodes ON list_slice(one_each.tokens, 1, $level - 1) = nodes.tokens
),

-- A coin's name is for tests alone: the prefix, and which of those who would vote for it.
named AS (
    SELECT
        prefix,
        ended,
        concat_ws(
            chr(31),
            node,
            ended,
            CASE WHEN ended THEN '' ELSE prefix[$level] END,
            row_number() OVER (PARTITION BY prefix, ended ORDER BY user_id) - 1
        ) AS name
    FROM next_prefixes
),

-- At every level each user tosses anew: heads with probability $numerator / 2^64.
coins AS MATERIALIZED (
    SELECT
        prefix,
        ended,
        dphh_word(name, $purpose) AS coin
    FROM named
),

votes AS (
    SELECT
        prefix,
        ended,
        count(*) AS votes
    FROM coins
    WHERE coin < CAST($numerator AS UBIGINT)
    GROUP BY prefix, ended
)

SELECT
    CAST($level AS INTEGER) AS level,
    prefix AS tokens,
    ended
FROM votes
WHERE votes >= $theta;

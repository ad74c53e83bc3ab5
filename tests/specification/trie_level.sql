-- TrieHH, one level (Zhu et al. 2020, Algorithms 1 and 2), where each user is sampled by an
-- independent coin: a sampled user whose sequence begins with a prefix of the trie votes for the
-- prefix one token longer. The end of a sequence is a token of its own kind.
-- In: one_sequence_each (user_id, tokens); trie (level, tokens, ended). Out: new rows of trie.
INSERT INTO trie
WITH

nodes AS (
    SELECT
        tokens,
        row_number() OVER (ORDER BY tokens) - 1 AS node
    FROM trie
    WHERE level = $level - 1 AND NOT ended
),

-- The users whose sequence begins with a prefix in the trie, and the prefix one token longer.
next_prefixes AS (
    SELECT
        one_sequence_each.user_id,
        list_slice(one_sequence_each.tokens, 1, $level) AS prefix,
        len(one_sequence_each.tokens) < $level AS ended,
        nodes.node
    FROM one_sequence_each
    INNER JOIN nodes ON list_slice(one_sequence_each.tokens, 1, $level - 1) = nodes.tokens
),

-- Only tests use a coin's name: the prefix, and the voter's rank among those who hold it.
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

-- At every level each user tosses a new coin: heads with probability $numerator / 2^64.
coins AS MATERIALIZED (
    SELECT prefix, ended, dphh_word(name, $purpose) AS coin
    FROM named
),

votes AS (
    SELECT prefix, ended, count(*) AS votes
    FROM coins
    WHERE coin < CAST($numerator AS UBIGINT)
    GROUP BY prefix, ended
)

SELECT CAST($level AS INTEGER) AS level, prefix AS tokens, ended
FROM votes
WHERE votes >= $theta;

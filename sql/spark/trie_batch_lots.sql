-- TrieHH as the papers have it: a lot for every user. $idle of them hold no sequence: they are
-- drawn like all others, and do not vote.
-- In: one_each (user_id, tokens). Out: lots (tokens, lot), drawn once.
CREATE TABLE lots AS
WITH

everyone AS (
    SELECT
        dphh_name(user_id) AS name,
        tokens
    FROM one_each
    UNION ALL
    SELECT
        chr(31) || id AS name,
        NULL AS tokens
    FROM range($idle)
)

SELECT
    tokens,
    dphh_word(name, $purpose) AS lot
FROM everyone;

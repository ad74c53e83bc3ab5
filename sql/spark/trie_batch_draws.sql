-- TrieHH as the papers have it: a draw for every user. $idle of them hold no sequence: they are
-- drawn like all others, and do not vote.
-- In: one_each (user_id, tokens). Out: draws (tokens, draw), drawn once.
CREATE TABLE draws AS
WITH

everyone AS (
    SELECT
        dphh_user_name(user_id) AS name,
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
    dphh_word(name, $purpose) AS draw
FROM everyone;

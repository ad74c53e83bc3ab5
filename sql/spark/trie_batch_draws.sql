-- TrieHH as the papers have it: a draw for each of $users users. Those who hold no sequence are
-- drawn like all others, and do not vote. How many they are stays on the executors.
-- In: one_each (user_id, tokens). Out: draws (tokens, draw), drawn once.
CREATE TABLE draws AS
WITH

counted AS (
    SELECT count(*) AS holders
    FROM one_each
),

without_sequence AS (
    SELECT chr(31) || places.id AS name
    FROM range($users) AS places
    INNER JOIN counted ON places.id < $users - counted.holders
),

everyone AS (
    SELECT
        user_id AS name,
        tokens
    FROM one_each
    UNION ALL
    SELECT
        name,
        NULL AS tokens
    FROM without_sequence
)

SELECT
    tokens,
    dphh_word(name, $purpose) AS draw
FROM everyone;

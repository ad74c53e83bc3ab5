-- A draw for everybody, to be seated by. $idle of them have no rows: they sit among all others, and
-- hold nothing.
-- In: local_words; $purpose, by which a run draws draws once. Out: draws (user_id, name, draw).
CREATE TABLE draws AS
WITH

users AS (
    SELECT DISTINCT user_id
    FROM local_words
),

everyone AS (
    SELECT
        user_id,
        dphh_user_name(user_id) AS name
    FROM users
    UNION ALL
    SELECT
        NULL AS user_id,
        chr(31) || id AS name
    FROM range($idle)
)

SELECT
    user_id,
    name,
    dphh_word(name, $purpose) AS draw
FROM everyone;

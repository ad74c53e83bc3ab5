-- A draw for everybody, to be seated by. Where there are fewer users than $seats, users are made
-- up: they sit among all others, and hold nothing. How many they are stays on the executors.
-- In: local_words; $purpose, by which a run draws draws once. Out: draws (user_id, name, draw).
CREATE TABLE draws AS
WITH

users AS (
    SELECT DISTINCT user_id
    FROM local_words
),

counted AS (
    SELECT count(*) AS users
    FROM users
),

made_up AS (
    SELECT chr(31) || places.id AS name
    FROM range($seats) AS places
    INNER JOIN counted ON places.id < $seats - counted.users
),

everyone AS (
    SELECT
        user_id,
        user_id AS name
    FROM users
    UNION ALL
    SELECT
        NULL AS user_id,
        name
    FROM made_up
)

SELECT
    user_id,
    name,
    dphh_word(name, $purpose) AS draw
FROM everyone;

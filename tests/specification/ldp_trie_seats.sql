-- LDP TrieHH: the words on each device, by seat. Users have seats in a secret random order; the
-- first seats serve the first level, the next ones the next level, and no user serves twice.
-- $idle of the users have no rows. A device has each word once, with the number of rows that hold
-- it; words with a character outside $characters are left out.
-- In: texts (user_id, tokens). Out: devices (seat, word, row_count).
CREATE OR REPLACE TEMP TABLE devices AS
WITH

everyone AS (
    SELECT DISTINCT user_id, user_id AS name
    FROM texts
    UNION ALL
    SELECT NULL AS user_id, chr(31) || range AS name
    FROM range($idle)
),

draws AS MATERIALIZED (
    SELECT user_id, name, dphh_word(name, $purpose) AS draw
    FROM everyone
),

seats AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY draw, name) AS seat
    FROM draws
)

SELECT seats.seat, texts.tokens AS word, count(*) AS row_count
FROM seats
INNER JOIN texts ON seats.user_id = texts.user_id
WHERE len(texts.tokens) > 0 AND list_has_all($characters, texts.tokens)
GROUP BY ALL;

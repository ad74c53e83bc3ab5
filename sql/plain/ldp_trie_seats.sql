-- LDP TrieHH: which words are on the device of who is asked when. Users sit in a secret random
-- order; the first so many serve the first level, the next the next, and nobody serves twice.
-- $idle of them hold nothing. A word counts on a device once, with how many rows hold it; a word
-- with a character that is not in $characters is none.
-- In: texts (user_id, tokens). Out: devices (seat, word, times).
CREATE OR REPLACE TEMP TABLE devices AS
WITH

everyone AS (
    SELECT DISTINCT
        user_id,
        CAST(user_id AS VARCHAR) AS name
    FROM texts
    UNION ALL
    SELECT
        NULL AS user_id,
        chr(31) || range AS name
    FROM range($idle)
),

lots AS MATERIALIZED (
    SELECT
        user_id,
        name,
        dphh_word(name, $purpose) AS lot
    FROM everyone
),

seats AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY lot, name) AS seat
    FROM lots
)

SELECT
    seats.seat,
    texts.tokens AS word,
    count(*) AS times
FROM seats
INNER JOIN texts ON seats.user_id = texts.user_id
WHERE len(texts.tokens) > 0 AND list_has_all($characters, texts.tokens)
GROUP BY ALL;

-- Who is asked when: $seats users, drawn without replacement and in an order that nobody can
-- foretell; the first so many serve the first level, the next the next, and nobody serves twice.
-- $idle of those drawn from have no rows: they sit among all others, and hold nothing. Lots are the
-- system's; equal ones are settled by the user alone, never by rows.
-- In: local_words; $purpose, by which a run draws lots once.
-- Out: seats (user_id, seat), seat from 1; idle seats are not listed.
CREATE TEMP TABLE seats AS
WITH

everyone AS (
    SELECT DISTINCT
        user_id,
        CAST(user_id AS VARCHAR) AS name
    FROM local_words
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

in_order AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY lot, name) AS seat
    FROM lots
)

SELECT
    user_id,
    seat
FROM in_order
WHERE user_id IS NOT NULL AND seat <= $seats;

-- Which user is asked at which level (Gboard, Algorithm 2, line 7): $seats users, sampled without
-- replacement, in a secret random order. The first seats serve the first level, the next ones the
-- next level, and no user serves twice. $idle of all users have no rows; they take seats like all
-- others. The random words are a hash under the run's secret key, so that a resumed run seats them
-- alike; ties are broken by user id, never by rows.
-- In: local_words; $purpose, for which a run draws once.
-- Out: seats (user_id, seat), seat from 1; idle seats are not listed.
CREATE TEMP TABLE seats AS
WITH

everyone AS (
    SELECT DISTINCT
        user_id,
        user_id AS name
    FROM local_words
    UNION ALL
    SELECT
        NULL AS user_id,
        chr(31) || range AS name
    FROM range($idle)
),

draws AS MATERIALIZED (
    SELECT
        user_id,
        name,
        dphh_word(name, $purpose) AS draw
    FROM everyone
),

in_order AS (
    SELECT
        user_id,
        row_number() OVER (ORDER BY draw, name) AS seat
    FROM draws
)

SELECT
    user_id,
    seat
FROM in_order
WHERE user_id IS NOT NULL AND seat <= $seats;

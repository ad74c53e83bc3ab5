-- Where this level's released grams stand: all that the next level needs to see.
-- In: positions (lot, grams, words) of the level below; the released keys, told to
-- dphh_places_of_grams. Out: next_positions (lot, grams, words).
CREATE TEMP TABLE next_positions AS
WITH

candidates AS (
    SELECT
        lot,
        dphh_pairs(grams, coalesce(words, grams), $ahead) AS keys,
        words
    FROM positions
),

places AS (
    SELECT
        lot,
        dphh_places_of_grams(keys) AS grams,
        words
    FROM candidates
),

neighbours AS (
    SELECT
        lot,
        CASE WHEN words IS NULL THEN dphh_beside_another(grams) ELSE grams END AS grams,
        words
    FROM places
)

SELECT
    lot,
    grams,
    words
FROM neighbours
WHERE len(grams) > 0;

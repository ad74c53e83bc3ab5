-- Where the released words stand: the number of a word at its place, -1 where it was not released
-- and after each text. A word with none released beside it goes, for it can be half of no pair; but
-- where pruning is on a single side ($single) every place stays, to be what longer grams end in.
-- In: users (lot, codes); the released words, told to dphh_places_of_words.
-- Out: positions (lot, grams, words).
CREATE TEMP TABLE positions AS
WITH

places AS (
    SELECT
        lot,
        dphh_places_of_words(codes) AS grams
    FROM users
),

neighbours AS (
    SELECT
        lot,
        CASE WHEN $single THEN grams ELSE dphh_beside_another(grams) END AS grams,
        CASE WHEN $single THEN grams END AS words
    FROM places
)

SELECT
    lot,
    grams,
    words
FROM neighbours
WHERE len(grams) > 0;

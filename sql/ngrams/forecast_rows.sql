-- What round 1 shows (step 2 of docs/ngrams.md): how many valid grams stand in each row, a class
-- and a bin. Held and absent grams are added up, so that neither number is shown. Words outside a
-- list, of class -1, are left out: only held ones are there, so their number must not be shown.
-- In: round_1, absent.
WITH

held_and_absent AS (
    SELECT class, bin, count(*) AS grams
    FROM round_1
    WHERE class >= 0
    GROUP BY class, bin
    UNION ALL
    SELECT class, bin, grams
    FROM absent
)

SELECT class, bin, CAST(sum(grams) AS BIGINT) AS grams
FROM held_and_absent
GROUP BY class, bin;

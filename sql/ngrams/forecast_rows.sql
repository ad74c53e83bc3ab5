-- What round 1 shows (step 2 of docs/ngrams.md): how many valid grams stand in each row, a class
-- and a bin. Held grams and the others together, so that neither number is seen. Words that a list
-- lacks are of class -1: only held ones have rows, so how many these are is not shown.
-- In: round_1, absent.
WITH

parts AS (
    SELECT class, bin, count(*) AS grams
    FROM round_1
    WHERE class >= 0
    GROUP BY class, bin
    UNION ALL
    SELECT class, bin, grams
    FROM absent
)

SELECT class, bin, CAST(sum(grams) AS BIGINT) AS grams
FROM parts
GROUP BY class, bin;

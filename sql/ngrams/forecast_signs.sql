-- What round 2 shows before its thresholds (the count of step 7 of docs/ngrams.md): how many
-- valid grams of each row stand at 0 or below. Not of words that a list lacks, as in
-- forecast_rows.sql.
-- In: round_2, absent_signs.
WITH

parts AS (
    SELECT class, bin, count(*) AS nonpositive
    FROM round_2
    WHERE second <= 0 AND class >= 0
    GROUP BY class, bin
    UNION ALL
    SELECT class, bin, nonpositive
    FROM absent_signs
)

SELECT class, bin, CAST(sum(nonpositive) AS BIGINT) AS nonpositive
FROM parts
GROUP BY class, bin;

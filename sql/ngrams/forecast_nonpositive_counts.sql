-- What round 2 shows before its thresholds (the count of step 7 of docs/ngrams.md): how many valid
-- grams of each row have a noised weight of 0 or below. Words outside a list are left out, as in
-- forecast_rows.sql.
-- In: round_2, absent_counts.
WITH

held_and_absent AS (
    SELECT class, bin, count(*) AS nonpositive
    FROM round_2
    WHERE second <= 0 AND class >= 0
    GROUP BY class, bin
    UNION ALL
    SELECT class, bin, nonpositive
    FROM absent_counts
)

SELECT class, bin, CAST(sum(nonpositive) AS BIGINT) AS nonpositive
FROM held_and_absent
GROUP BY class, bin;

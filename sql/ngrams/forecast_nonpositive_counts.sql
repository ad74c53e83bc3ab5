-- What round 2 shows before its thresholds (the count of step 7 of docs/ngrams.md): how many valid
-- grams of each cell have a noised weight of 0 or below. Words outside a list are left out, as in
-- forecast_cells.sql.
-- In: round_2, absent_counts.
WITH

held_and_absent AS (
    SELECT cell, count(*) AS nonpositive
    FROM round_2
    WHERE second <= 0 AND cell >= 0
    GROUP BY cell
    UNION ALL
    SELECT cell, nonpositive
    FROM absent_counts
)

SELECT cell, CAST(sum(nonpositive) AS BIGINT) AS nonpositive
FROM held_and_absent
GROUP BY cell;

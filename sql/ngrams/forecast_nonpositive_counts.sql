-- What a later round shows before its thresholds (the count of step 7 of docs/ngrams.md): how
-- many valid grams of each cell have a noised weight of 0 or below. Words outside a list are
-- left out, as in forecast_cells.sql. A cell without such grams has no row, whether or not it
-- has absent grams.
-- In: later_round, absent_counts.
WITH

held_and_absent AS (
    SELECT cell, count(*) AS nonpositive
    FROM later_round
    WHERE second <= 0 AND cell >= 0
    GROUP BY cell
    UNION ALL
    SELECT cell, nonpositive
    FROM absent_counts
    WHERE nonpositive > 0
)

SELECT cell, CAST(sum(nonpositive) AS BIGINT) AS nonpositive
FROM held_and_absent
GROUP BY cell;

-- What a round shows (steps 2 and 9 of docs/ngrams.md): how many valid grams that are not
-- decided stand in each cell. Held and absent grams are added up, so that neither number is
-- shown. Words outside a list, whose cells are below 0, are left out: only held ones are there,
-- so their number must not be shown.
-- In: undecided, absent.
WITH

held_and_absent AS (
    SELECT cell, count(*) AS grams
    FROM undecided
    WHERE cell >= 0
    GROUP BY cell
    UNION ALL
    SELECT cell, grams
    FROM absent
)

SELECT cell, CAST(sum(grams) AS BIGINT) AS grams
FROM held_and_absent
GROUP BY cell;

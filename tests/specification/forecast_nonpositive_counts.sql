-- The forecast ladder: what a run may see of the rounds' cells (steps 2 and 7 of docs/ngrams.md).
-- How many valid grams each cell has, and how many of these have a noised weight of 0 or below in
-- the later round. Words outside a list are in cells below 0: only held ones are there, so they are
-- not counted.
-- In: later_round. Returns (cell, grams, nonpositive).
SELECT
    cell,
    count(*) AS grams,
    count(*) FILTER (WHERE second <= 0) AS nonpositive
FROM later_round
WHERE cell >= 0
GROUP BY cell

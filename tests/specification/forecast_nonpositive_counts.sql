-- The forecast ladder: what a run may see of the rounds' rows (steps 2 and 7 of docs/ngrams.md).
-- How many valid grams each row has, and how many of these have a noised weight of 0 or below in
-- round 2. Words outside a list are of class -1: only held ones are there, so they are not counted.
-- In: round_2. Returns (class, bin, grams, nonpositive).
SELECT
    class,
    bin,
    count(*) AS grams,
    count(*) FILTER (WHERE second <= 0) AS nonpositive
FROM round_2
WHERE class >= 0
GROUP BY class, bin

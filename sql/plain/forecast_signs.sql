-- The forecast ladder: what a run may see of the rounds' rows (steps 2 and 7 of docs/ngrams.md).
-- How many valid grams each has, and how many of these stand at 0 or below in round 2. Words that a
-- list lacks are of class -1: only held ones are there, so they are not counted.
-- In: round_2. Gives (class, bin, grams, nonpositive).
SELECT
    class,
    bin,
    count(*) AS grams,
    count(*) FILTER (WHERE second <= 0) AS nonpositive
FROM round_2
WHERE class >= 0
GROUP BY class, bin

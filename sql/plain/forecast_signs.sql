-- The forecast ladder: what a run may see of the rows. For each row, the number of valid grams, and
-- how many of them have a noised weight of at most 0 in round 2.
-- In: round_2. Returns (class, bin, grams, negatives).
SELECT
    class,
    bin,
    count(*) AS grams,
    count(*) FILTER (WHERE second <= 0) AS negatives
FROM round_2
GROUP BY class, bin

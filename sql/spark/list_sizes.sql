-- The noised sizes of lists, which round 1 shows. The driver sorts them: Spark would look at them
-- first, to divide them.
SELECT
    bin,
    noisy
FROM list_sizes;

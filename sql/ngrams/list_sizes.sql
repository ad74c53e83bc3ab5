-- The noised sizes of lists, which round 1 shows.
SELECT noisy
FROM list_sizes
ORDER BY bin;

-- The noised sizes of lists, which round 1 shows (step 2 of docs/ngrams.md).
SELECT noisy
FROM list_sizes
ORDER BY bin;

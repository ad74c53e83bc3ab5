-- The noised sizes of lists, which round 1 shows (step 2 of docs/ngrams.md).
SELECT bin, noisy
FROM list_sizes;

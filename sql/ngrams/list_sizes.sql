-- The noised counts of users by list size, how many valid grams a user holds (step 2 of
-- docs/ngrams.md). Round 1 shows them.
SELECT bin, noisy
FROM list_sizes;

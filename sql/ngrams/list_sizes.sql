-- For each bin of list sizes, the noised number of its users. A list size is how many valid grams a
-- user holds. Round 1 shows these numbers (step 2 of docs/ngrams.md).
SELECT bin, noisy
FROM list_sizes;

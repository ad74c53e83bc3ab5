-- For each bin of users, its noised number of users: by how many valid grams they hold, and by
-- their purse and how far they can climb (steps 2 and 9 of docs/ngrams.md).
SELECT bin, noisy
FROM user_counts;

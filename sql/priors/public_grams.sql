-- The grams of one length, to be fetched.
-- In: grams (gram, left_gram, right_gram, occurs).
SELECT left_gram, right_gram, occurs
FROM grams
ORDER BY gram;

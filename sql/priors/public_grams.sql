-- The grams of one length in a public text, in order.
-- In: grams (gram, left_gram, right_gram, occurs).
SELECT left_gram, right_gram, occurs
FROM grams
ORDER BY gram;

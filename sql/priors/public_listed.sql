-- The list of words of a public text, in order.
-- In: listed (gram, word, occurs).
SELECT word, occurs
FROM listed
ORDER BY gram;

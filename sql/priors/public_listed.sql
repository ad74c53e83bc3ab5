-- The list, to be fetched.
-- In: listed (gram, word, occurs).
SELECT word, occurs
FROM listed
ORDER BY gram;

-- The words of a public text with how often each occurs, by `gram`, a word's number in the list.
-- In: listed (gram, word, occurs). Out: (word, occurs).
SELECT word, occurs
FROM listed
ORDER BY gram;

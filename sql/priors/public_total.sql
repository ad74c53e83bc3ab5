-- How many words a public text has in all.
-- In: word_counts (word, occurs).
SELECT CAST(coalesce(sum(occurs), 0) AS BIGINT) AS total
FROM word_counts;

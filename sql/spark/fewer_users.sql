-- Whether there are fewer users than the plan asks: then one row, else none. That is all that
-- leaves the executors.
-- In: local_words.
SELECT true AS fewer
FROM local_words
HAVING count(DISTINCT user_id) < $seats;

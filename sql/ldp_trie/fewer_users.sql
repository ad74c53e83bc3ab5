-- One row if there are fewer users than the plan asks, else none. That is all that leaves the
-- engine.
-- In: local_words (user_id, word, row_count).
SELECT true AS fewer
FROM local_words
HAVING count(DISTINCT user_id) < $seats;

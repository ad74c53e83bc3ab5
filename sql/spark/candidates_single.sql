-- DPNE, pruning on a single side: a candidate is a gram whose first k - 1 tokens were released as
-- a gram and whose last token was released as a word; NULL where either was not.
-- In: positions (user_id, grams, words). Out: candidates (user_id, keys, words),
-- key = left * 2^32 + right.
CREATE TABLE candidates AS
SELECT
    user_id,
    zip_with(
        slice(grams, 1, size(grams) - 1),
        slice(coalesce(words, grams), $level, size(grams) - 1),
        (left_gram, last_word) -> (CAST(left_gram AS BIGINT) << 32) | last_word
    ) AS keys,
    coalesce(words, grams) AS words
FROM positions;

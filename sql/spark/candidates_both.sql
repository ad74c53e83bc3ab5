-- DPNE, pruning on both sides: a candidate is a gram whose first and whose last k - 1 tokens were
-- released: two released grams at neighbouring places; NULL where either was not.
-- In: positions (user_id, grams, words). Out: candidates (user_id, keys, words),
-- key = left * 2^32 + right.
CREATE TABLE candidates AS
SELECT
    user_id,
    zip_with(
        slice(grams, 1, size(grams) - 1),
        slice(grams, 2, size(grams) - 1),
        (left_gram, right_gram) -> (CAST(left_gram AS BIGINT) << 32) | right_gram
    ) AS keys,
    CAST(NULL AS ARRAY<INT>) AS words
FROM positions;

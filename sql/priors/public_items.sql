-- The items of a public table with their counts; items of the same tokens are one. NULL counts and
-- those that are no numbers are told apart, to be refused.
-- In: rows_of_corpus (user_id: the count, content: the item). Out: items (tokens, occurs).
WITH

rows_read AS (
    SELECT
        not_empty(tokens_of(content)) AS tokens,
        try_cast(user_id AS DOUBLE) AS occurs
    FROM rows_of_corpus
)

SELECT
    tokens,
    sum(occurs) AS occurs,
    bool_and(coalesce(occurs > 0 AND isfinite(occurs), false)) AS is_count
FROM rows_read
WHERE len(tokens) > 0
GROUP BY tokens;

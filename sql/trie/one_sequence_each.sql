-- One sequence of each user who has any.
-- In: contents_of_users (user_id, contents); chosen (user_id, tokens), of users of several rows.
-- Out: one_sequence_each (user_id, tokens).
CREATE TEMP TABLE one_sequence_each AS
WITH

of_one_row AS (
    SELECT
        user_id,
        not_empty(tokens_of(try_element_at(contents, 1))) AS tokens
    FROM contents_of_users
    WHERE array_size(contents) = 1
)

SELECT user_id, tokens
FROM of_one_row
WHERE array_size(tokens) > 0
UNION ALL
SELECT user_id, tokens
FROM chosen;

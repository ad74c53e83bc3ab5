-- The tokens of a public table's items.
-- In: rows_of_corpus (user_id: the number of a row, content: the item). Out: number, tokens.
WITH

rows_read AS (
    SELECT
        CAST(user_id AS BIGINT) AS number,
        not_empty(tokens_of(content)) AS tokens
    FROM rows_of_corpus
)

SELECT
    number,
    tokens
FROM rows_read
WHERE len(tokens) > 0;

-- The number of rows with content and a NULL user id. Parquet's statistics show for most files that
-- no user id is NULL, and then the file is not read. Only rows with a NULL user id are
-- materialised, so the content of other rows is never tokenised here.
-- In: rows_of_corpus (user_id, content).
WITH

null_users AS MATERIALIZED (
    SELECT content
    FROM rows_of_corpus
    WHERE user_id IS NULL
)

SELECT count(*) AS held
FROM null_users
WHERE len(not_empty(tokens_of(content))) > 0

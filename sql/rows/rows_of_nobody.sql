-- How many rows hold something and are of nobody. Parquet's statistics say of most files that no
-- user is NULL, and then none of them is read. What is materialised holds nobody's rows alone, so
-- that no other's content is ever read into tokens.
-- In: rows_of_corpus (user_id, content).
WITH

nobodys AS MATERIALIZED (
    SELECT content
    FROM rows_of_corpus
    WHERE user_id IS NULL
)

SELECT count(*) AS held
FROM nobodys
WHERE len(not_empty(tokens_of(content))) > 0

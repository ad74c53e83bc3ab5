-- The words on each user's device, each once, with the number of the user's rows that hold it. In
-- a word, number i of $codes, one code point, stands for number i of $characters. A word with a
-- character outside $characters becomes NULL: its user takes part, and reports nothing of it.
-- In: rows_of_corpus (user_id, content). Out: local_words (user_id, word, row_count).
CREATE TEMP TABLE local_words AS
WITH

numbered AS (
    SELECT
        user_id,
        list_transform(
            not_empty(tokens_of(content)),
            lambda token: coalesce(list_position($characters, token), 0)
        ) AS numbers
    FROM rows_of_corpus
),

spelled_out AS (
    SELECT
        user_id,
        CASE
            WHEN array_size(numbers) > 0 AND NOT list_contains(numbers, CAST(0 AS BIGINT))
                THEN array_to_string(
                    list_transform(
                        numbers, lambda number: try_element_at($codes, CAST(number AS INTEGER))
                    ),
                    ''
                )
        END AS word
    FROM numbered
),

counted AS (
    SELECT user_id, word, count(*) AS row_count
    FROM spelled_out
    GROUP BY user_id, word
)

SELECT coalesce(user_id, error('dphh: NULL user')) AS user_id, word, row_count
FROM counted;

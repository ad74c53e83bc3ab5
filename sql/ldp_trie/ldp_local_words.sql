-- The words on each user's device, each once, with the number of the user's rows that hold it.
-- spelled_out encodes a word with one code point a character: character number i of $characters
-- is chr(i + 1). A word with a character outside the set becomes NULL: its user takes part, and
-- reports nothing of it.
-- In: tokens_of_rows (user_id, tokens). Out: local_words (user_id, word, times).
CREATE TEMP TABLE local_words AS
WITH

numbered AS (
    SELECT
        user_id,
        list_transform(
            list_filter(tokens, lambda token: token <> ''),
            lambda token: coalesce(list_position($characters, token), 0)
        ) AS numbers
    FROM tokens_of_rows
),

spelled_out AS (
    SELECT
        user_id,
        CASE
            WHEN len(numbers) > 0 AND NOT list_contains(numbers, 0)
                THEN array_to_string(
                    list_transform(numbers, lambda number: chr(CAST(number AS INTEGER))), ''
                )
        END AS word
    FROM numbered
)

SELECT
    user_id,
    word,
    count(*) AS times
FROM spelled_out
GROUP BY user_id, word;

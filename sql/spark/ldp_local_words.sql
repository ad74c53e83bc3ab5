-- Every user's words, each once, with how many of the user's rows hold it: what is on the devices.
-- A word is spelled with one code point a character: character number i of $characters is
-- chr(i + 1). A word with a character outside the set stays NULL: its user is there and says
-- nothing of it.
-- In: tokens_of_rows (user_id, tokens). Out: local_words (user_id, word, times).
CREATE TABLE local_words AS
WITH

numbered AS (
    SELECT
        user_id,
        transform(not_empty(tokens), token -> array_position($characters, token)) AS numbers
    FROM tokens_of_rows
),

spelled_out AS (
    SELECT
        user_id,
        CASE
            WHEN size(numbers) > 0 AND NOT array_contains(numbers, CAST(0 AS BIGINT))
                THEN array_join(
                    transform(
                        numbers,
                        -- Spark's chr() ends at 255.
                        number -> decode(unhex(lpad(hex(number), 8, '0')), 'UTF-32')
                    ),
                    ''
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

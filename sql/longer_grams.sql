-- Every gram, longer by the word that follows it in its text; NULL where the text has ended.
-- In: grams, of length $length - 1. Out: longer_grams, of length $length.
CREATE TEMP TABLE longer_grams AS
WITH

ahead AS (
    SELECT
        *,
        lead(word, $length - 1) OVER () AS last_word,
        lead(position, $length - 1) OVER () AS last_position
    FROM grams
)

SELECT
    position,
    user_id,
    word,
    CASE
        WHEN last_position = position + $length - 1 THEN gram || chr(31) || last_word
    END AS gram
FROM ahead;

-- The distinct grams of one length that each user holds, no matter what was released: words joined
-- by the unit separator, which is written otherwise inside of a word.
-- In: texts (user_id, tokens). Out: held (user_id, key).
CREATE TABLE held AS
WITH

written AS (
    SELECT
        user_id,
        transform(
            tokens,
            -- chr(92) is the backslash, which Spark's literals would have to escape.
            token -> replace(
                replace(token, chr(92), chr(92) || chr(92)), chr(31), chr(92) || 's'
            )
        ) AS words
    FROM texts
    WHERE size(tokens) >= $length
),

places AS (
    SELECT
        user_id,
        words,
        explode(sequence(1, size(words) - $length + 1)) AS place
    FROM written
)

SELECT DISTINCT
    user_id,
    array_join(slice(words, place, $length), chr(31)) AS key
FROM places;

-- Where the released words stand. A position is the text's row number and the place in the text:
-- two differ by one just where they are neighbours in the same text.
-- In: texts, released (key, gram). Out: next_positions (position, user_id, gram), in order.
CREATE TEMP TABLE next_positions AS
WITH

words AS (
    SELECT
        user_id,
        (rowid << 26) + unnest(range(1, len(tokens) + 1)) AS position,
        unnest(tokens) AS key
    FROM texts
)

SELECT
    words.position,
    words.user_id,
    released.gram
FROM words
INNER JOIN released ON words.key = released.key
ORDER BY words.position;

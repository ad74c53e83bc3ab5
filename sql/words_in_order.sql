-- Every word where it stands, spelled out and in order: what is looked at without any pruning.
-- Longer grams join their words by the unit separator, so that is written otherwise inside of one.
-- In: texts. Out: grams (position, user_id, word, gram): at first each word is its own gram.
CREATE TEMP TABLE grams AS
WITH

words AS (
    SELECT
        user_id,
        (rowid << 26) + unnest(range(1, len(tokens) + 1)) AS position,
        unnest(tokens) AS token
    FROM texts
),

written AS (
    SELECT
        position,
        user_id,
        replace(replace(token, '\', '\\'), chr(31), '\s') AS word
    FROM words
)

SELECT
    position,
    user_id,
    word,
    word AS gram
FROM written
ORDER BY position;

-- Level 1: every word, where it stands. A position is the text's row number and the place in the
-- text: two differ by one just where they are neighbours in the same text.
-- In: texts, vocabulary. Out: candidates (position, user_id, key), key = word.
CREATE TEMP TABLE candidates AS
WITH

words AS (
    SELECT
        user_id,
        (rowid << 26) + unnest(range(1, len(tokens) + 1)) AS position,
        unnest(tokens) AS token
    FROM texts
)

SELECT
    words.position,
    words.user_id,
    vocabulary.word AS key
FROM words
INNER JOIN vocabulary ON words.token = vocabulary.token;

-- Where the released words stand: what longer grams end in, where pruning is on a single side.
-- In: texts, released_words (key, gram). Out: word_positions (position, gram), in no order;
-- positions are those of candidates_of_words.sql.
CREATE TEMP TABLE word_positions AS
WITH

words AS (
    SELECT
        (rowid << 26) + unnest(range(1, len(tokens) + 1)) AS position,
        unnest(tokens) AS key
    FROM texts
)

SELECT
    words.position,
    released_words.gram
FROM words
INNER JOIN released_words ON words.key = released_words.key;

-- DPNE at level 2, on either pruning: a candidate is a pair of released words beside each other in
-- a text. In: texts, released_words (key, gram). Out: candidates (position, user_id, key), in no
-- order, key = left * 2^32 + right. A position is the text's row number and the place in the text:
-- two differ by one just where they are neighbours in the same text.
CREATE TEMP TABLE candidates AS
WITH

pairs AS (
    SELECT
        user_id,
        (rowid << 26) + unnest(range(1, len(tokens))) AS position,
        unnest(tokens[:-2]) AS left_word,
        unnest(tokens[2:]) AS right_word
    FROM texts
)

SELECT
    pairs.position,
    pairs.user_id,
    (CAST(left_words.gram AS BIGINT) << 32) | right_words.gram AS key
FROM pairs
INNER JOIN released_words AS left_words ON pairs.left_word = left_words.key
INNER JOIN released_words AS right_words ON pairs.right_word = right_words.key;

-- DPNE, pruning on a single side: a candidate is a gram whose first k - 1 tokens were released as
-- a gram and whose last token was released as a word. In: positions; word_positions, those of
-- level 1. Out: candidates (position, user_id, key), key = left * 2^32 + right.
CREATE TEMP TABLE candidates AS
SELECT
    positions.position,
    positions.user_id,
    (CAST(positions.gram AS BIGINT) << 32) | word_positions.gram AS key
FROM positions
INNER JOIN word_positions
    ON positions.position + $level - 1 = word_positions.position;

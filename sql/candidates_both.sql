-- DPNE, pruning on both sides: a candidate is a gram whose first and whose last k - 1 tokens were
-- released: two released grams at neighbouring positions. In: positions, in order.
-- Out: candidates (position, user_id, key), key = left * 2^32 + right.
CREATE TEMP TABLE candidates AS
WITH

neighbours AS (
    SELECT
        position,
        user_id,
        gram AS left_gram,
        lead(gram) OVER () AS right_gram,
        lead(position) OVER () AS next_position
    FROM positions
)

SELECT
    position,
    user_id,
    (CAST(left_gram AS BIGINT) << 32) | right_gram AS key
FROM neighbours
WHERE next_position = position + 1;

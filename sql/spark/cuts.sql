-- Where the keys of over-full users are cut: such a user keeps those whose hash lies below their
-- ($max_items + 1)st smallest, which is never more than $max_items. Which ones they are does not
-- matter for privacy, as long as it depends on that user alone: so neither user_id nor key may be
-- a number that another user's coming or going would change. Sorted, and spilled, user by user:
-- a list of all keys of one user might not fit a task.
-- In: held (user_id, key), holders (user_id, t). Out: cuts (user_id, cut).
CREATE TABLE cuts AS
WITH

over_full AS (
    SELECT user_id
    FROM holders
    WHERE t > $max_items
),

hashed AS (
    SELECT
        held.user_id,
        xxhash64(held.user_id, held.key, $salt) AS place
    FROM held
    INNER JOIN over_full ON held.user_id = over_full.user_id
),

ranked AS (
    SELECT
        user_id,
        place,
        row_number() OVER (PARTITION BY user_id ORDER BY place) AS rank
    FROM hashed
)

SELECT
    user_id,
    place AS cut
FROM ranked
WHERE rank = $max_items + 1;

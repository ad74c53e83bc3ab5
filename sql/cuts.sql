-- Where the keys of over-full users are cut: such a user keeps those whose hash lies below their
-- ($max_items + 1)st smallest, which is never more than $max_items. Which ones they are does not
-- matter for privacy, as long as it depends on that user alone: so neither user_id nor key may be
-- a number that another user's coming or going would change. For one part in $parts of the users.
-- In: held (user_id, key), holders (user_id, t). Out: added to cuts (user_id, cut).
INSERT INTO cuts
WITH

over_full AS (
    SELECT user_id
    FROM holders
    WHERE
        t > $max_items
        AND hash(user_id) % CAST($parts AS UBIGINT) = CAST($part AS UBIGINT)
),

hashed AS (
    SELECT
        held.user_id,
        xxhash64(held.user_id, held.key, $salt) AS place
    FROM held
    INNER JOIN over_full ON held.user_id = over_full.user_id
),

places AS (
    SELECT
        user_id,
        list_sort(array_agg(place)) AS ascending
    FROM hashed
    GROUP BY user_id
)

SELECT
    user_id,
    list_extract(ascending, $max_items + 1) AS cut
FROM places;

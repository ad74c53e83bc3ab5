-- Where the keys of over-full users are cut: such a user keeps those whose hash lies below their
-- ($max_items + 1)st smallest, which is never more than $max_items. Which ones they are does not
-- matter for privacy, as long as it depends on that user alone: so neither user_id nor key may be
-- a number that another user's coming or going would change.
-- In: held (user_id, key), holders (user_id, t). Out: cuts (user_id, cut).
CREATE TEMP TABLE cuts AS
WITH

-- Counted from the side where it is nearer.
ranks AS (
    SELECT
        user_id,
        t,
        $max_items + 1 > t - $max_items AS from_above,
        least($max_items + 1, t - $max_items) AS rank
    FROM holders
    WHERE t > $max_items
),

-- Of t uniform hashes, the one of this rank lies further from its side for one user in a billion
-- (who then keeps nothing): all others need no sorting.
sides AS (
    SELECT
        user_id,
        from_above,
        rank,
        CAST(
            least((rank + 6 * sqrt(rank) + 36) / (t + 1), 1 - 1e-15) * pow(2, 64) AS UBIGINT
        ) AS farthest
    FROM ranks
),

hashed AS (
    SELECT
        held.user_id,
        sides.from_above,
        sides.rank,
        sides.farthest,
        xxhash64(held.user_id, held.key, $salt) AS place
    FROM held
    INNER JOIN sides ON held.user_id = sides.user_id
),

turned AS (
    SELECT
        user_id,
        rank,
        farthest,
        place,
        CASE WHEN from_above THEN ~place ELSE place END AS distance
    FROM hashed
),

ranked AS (
    SELECT
        user_id,
        rank,
        place,
        row_number() OVER (PARTITION BY user_id ORDER BY distance) AS number
    FROM turned
    WHERE distance <= farthest
)

SELECT
    user_id,
    place AS cut
FROM ranked
WHERE number = rank;

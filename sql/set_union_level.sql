-- One level of differentially private set union, by the weighted Gaussian policy
-- (Gopi et al. 2020): every user spreads a vector of L2 norm at most 2^b over what they hold.
-- In: held (user_id, key), distinct pairs; holders (user_id, t), how many; cuts (user_id, cut), of
-- the over-full; weights (t, weight), weight = floor(2^b / sqrt(t)) for t up to $max_items.
-- Out: noised (key, noisy), drawn once: nothing reads the noise before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

within_cap AS (
    SELECT
        held.key,
        weights.weight
    FROM held
    INNER JOIN holders ON held.user_id = holders.user_id
    INNER JOIN weights ON holders.t = weights.t
),

-- An over-full user keeps $max_items of their keys, or fewer where hashes are equal.
over_cap AS (
    SELECT
        held.key,
        weights.weight
    FROM held
    INNER JOIN cuts ON held.user_id = cuts.user_id
    INNER JOIN weights ON weights.t = $max_items
    WHERE xxhash64(held.user_id, held.key, $salt) < cuts.cut
),

bounded AS (
    SELECT
        key,
        weight
    FROM within_cap
    UNION ALL
    SELECT
        key,
        weight
    FROM over_cap
),

histogram AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM bounded
    GROUP BY key
)

SELECT
    key,
    weight + dphh_noise(CAST(key AS STRING), $sigma, $purpose) AS noisy
FROM histogram;

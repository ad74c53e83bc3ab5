-- One level of differentially private set union, by the weighted Gaussian policy
-- (Gopi et al. 2020): every user spreads a vector of L2 norm at most 2^b over what they hold.
-- In: held (user_id, key), distinct pairs; holders (user_id, t), how many; cuts (user_id, cut), of
-- the over-full; weights (t, weight), weight = floor(2^b / sqrt(t)) for t up to $max_items.
-- Out: noised (key, noisy), drawn once: nothing reads the noise before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

-- An over-full user keeps $max_items of their keys, or fewer where hashes are equal.
users AS (
    SELECT
        holders.user_id,
        weights.weight,
        cuts.cut
    FROM holders
    INNER JOIN weights ON weights.t = least(holders.t, $max_items)
    LEFT JOIN cuts ON holders.user_id = cuts.user_id
    WHERE holders.t <= $max_items OR cuts.cut IS NOT NULL
),

bounded AS (
    SELECT
        held.key,
        users.weight
    FROM held
    INNER JOIN users ON held.user_id = users.user_id
    WHERE users.cut IS NULL OR xxhash64(held.user_id, held.key, $salt) < users.cut
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

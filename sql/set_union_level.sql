-- One level of differentially private set union, by the weighted Gaussian policy
-- (Gopi et al. 2020): every user spreads a vector of L2 norm at most 2^b over what they hold.
-- In: held (user_id, key), distinct pairs; weights (t, weight), weight = floor(2^b / sqrt(t)).
-- Out: noised (key, noisy), drawn once: nothing reads the noise before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

holders AS (
    SELECT
        user_id,
        count(*) AS t
    FROM held
    GROUP BY user_id
),

shares AS (
    SELECT
        holders.user_id,
        holders.t,
        weights.weight
    FROM holders
    INNER JOIN weights ON least(holders.t, $max_items) = weights.t
),

within_cap AS (
    SELECT
        held.key,
        shares.weight
    FROM held
    INNER JOIN shares ON held.user_id = shares.user_id
    WHERE shares.t <= $max_items
),

-- An over-full user keeps $max_items of their keys. Which ones does not matter for privacy, as
-- long as it depends on that user alone: so neither user_id nor key may be a number that another
-- user's coming or going would change.
over_cap AS (
    SELECT
        held.key,
        shares.weight
    FROM held
    INNER JOIN shares ON held.user_id = shares.user_id
    WHERE shares.t > $max_items
    QUALIFY row_number() OVER (
        PARTITION BY held.user_id
        ORDER BY hash(held.user_id, held.key, $salt), held.key
    ) <= $max_items
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
    weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
FROM histogram;

-- What `items` by "auto" looks at before it chooses: users' weights by bucket, with noise. Buckets
-- are public, and each gets noise, so what is seen does not depend on which items exist.
-- In: users (user_hashes, lengths, ids, words), each row with lists of many whole users.
-- Out: noised (key, noisy), drawn once: it is stored before it is read.
CREATE TEMP TABLE noised AS
WITH

-- A user whose words lie in t buckets adds floor(2^b / sqrt(t)) to each; or nothing, if these are
-- more than $max_items (udfs/rules/weights.py).
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_to_buckets(
                user_hashes, lengths, ids, words, $buckets, $max_items, $grid_bits
            )
        ) AS contribution
    FROM users
),

sums AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
),

weights AS (
    SELECT buckets.key, coalesce(sums.weight, 0) AS weight
    FROM range($buckets) AS buckets (key)
    LEFT JOIN sums ON buckets.key = sums.key
)

-- The noise does not depend on the key: dphh_noise takes it as a name, which only tests use.
SELECT key, weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
FROM weights;

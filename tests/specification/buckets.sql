-- What "auto" looks at before it chooses: noised sums by public bucket. A word's bucket is the hash
-- of its spelling, modulo $buckets.
-- In: held_items (user_id, item). Out: bucket_sums (key, noisy).
CREATE OR REPLACE TEMP TABLE bucket_sums AS
WITH

held AS (
    SELECT DISTINCT
        user_id,
        CAST(dphh_hash_of_spelling(item) % $buckets AS BIGINT) AS key
    FROM held_items
),

counted AS (
    SELECT
        key,
        count(*) OVER (PARTITION BY user_id) AS size
    FROM held
),

-- floor(2^b / sqrt(t)) to each of t buckets; nothing from a user of more than $max_items.
contributions AS (
    SELECT
        key,
        CASE WHEN size <= $max_items THEN dphh_even_weight(size, $grid_bits) ELSE 0 END AS weight
    FROM counted
),

coordinates AS (
    SELECT range AS key
    FROM range($buckets)
)

SELECT
    coordinates.key,
    CAST(coalesce(sum(contributions.weight), 0) AS BIGINT)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN contributions ON coordinates.key = contributions.key
GROUP BY coordinates.key;

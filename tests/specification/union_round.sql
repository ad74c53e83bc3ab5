-- One of several rounds of a set union whose weights depend on earlier noised weights (`items` with
-- method "adaptive"). In the first, $equal is true: any $max_items items, and equal weights.
-- In: held_items (user_id, item); earlier_sums (item, noisy_sum), for every item that any user held
-- in the previous round. $first_grid_threshold is the round's threshold, on the first round's grid.
-- Out: noised (item, has_weight, noisy), for every item that any user holds, even if all its
-- weights are 0: otherwise the next round's weights, which follow these, would depend on who else
-- holds the item. New rows of released (level, tokens, noisy). And earlier_sums, now with this
-- round too; it is never shown.
CREATE OR REPLACE TEMP TABLE noised AS
WITH

weighed AS (
    SELECT
        held_items.user_id,
        held_items.item,
        CASE
            WHEN $equal THEN 1
            ELSE dphh_weight(
                earlier_sums.noisy_sum, $total_precision, $deviation, $first_grid_threshold
            )
        END AS w,
        dphh_place(dphh_hash_of_spelling(held_items.item), held_items.user_id, $salt) AS place
    FROM held_items
    LEFT JOIN earlier_sums ON held_items.item = earlier_sums.item
),

-- The largest w first; equal ones are in a random order of the user's own.
placed AS (
    SELECT
        user_id,
        item,
        w,
        CASE
            WHEN $equal THEN place
            ELSE (CAST(32768 - w AS UBIGINT) << 24) | (place >> 16)
        END AS place
    FROM weighed
),

counted AS (
    SELECT
        user_id,
        item,
        w,
        least(count(*) OVER (PARTITION BY user_id), $max_items) AS size,
        count(*) OVER (PARTITION BY user_id ORDER BY place) <= $max_items AS kept
    FROM placed
),

-- floor(2^b w / |w|) to each kept item, with |w| rounded up: a user's L2 norm is at most 2^b.
contributions AS (
    SELECT
        item,
        CASE
            WHEN NOT kept THEN 0
            WHEN $equal THEN dphh_even_weight(size, $grid_bits)
            ELSE (CAST(1 AS BIGINT) << $grid_bits) * w // dphh_root_up(
                CAST(sum(w * w) FILTER (WHERE kept) OVER (PARTITION BY user_id) AS BIGINT)
            )
        END AS weight
    FROM counted
),

histogram AS (
    SELECT item, CAST(sum(weight) AS BIGINT) AS weight
    FROM contributions
    GROUP BY item
)

SELECT
    item,
    weight > 0 AS has_weight,
    weight + dphh_noise(item, $sigma, $purpose) AS noisy
FROM histogram;

-- What a round releases: items of positive weight whose noised weight reaches the threshold.
INSERT INTO released
SELECT 1 AS level, [item] AS tokens, noisy
FROM noised
WHERE has_weight AND noisy >= $threshold;

-- The sum of each item's noised weights so far, each times its round's precision.
CREATE OR REPLACE TEMP TABLE earlier_sums AS
SELECT
    noised.item,
    coalesce(earlier_sums.noisy_sum, 0) + CAST($own_precision AS BIGINT) * noised.noisy AS noisy_sum
FROM noised
LEFT JOIN earlier_sums ON noised.item = earlier_sums.item;

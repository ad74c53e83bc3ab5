-- The forecast ladder, round 2 (step 6 of docs/ngrams.md): users weigh each gram by its row,
-- scaled to the L2 norm.
-- In: held; round_1, with every valid gram that any user holds, even if its weight was 0;
-- row_weights (class, bin, weight), public: computed from round 1's rows and earlier releases
-- (steps 3 to 5).
-- Out: round_2 (gram, class, bin, first, second, is_held).
CREATE OR REPLACE TEMP TABLE round_2 AS
WITH

-- A gram's weight depends on its row alone, not on who holds it.
weighed AS (
    SELECT held.user_id, held.gram, row_weights.weight
    FROM held
    INNER JOIN round_1 ON held.gram = round_1.gram
    INNER JOIN row_weights ON round_1.class = row_weights.class AND round_1.bin = row_weights.bin
),

norms AS (
    SELECT
        user_id,
        gram,
        weight,
        CAST(sum(weight * weight) OVER (PARTITION BY user_id) AS BIGINT) AS square
    FROM weighed
),

-- floor(norm g / |g|), with |g| rounded up, so that a user's L2 norm is at most $norm.
shared_out AS (
    SELECT
        gram,
        CAST($norm AS BIGINT) * weight // greatest(dphh_root_up(square), 1) AS weight
    FROM norms
),

histogram AS (
    SELECT gram, CAST(sum(weight) AS BIGINT) AS weight
    FROM shared_out
    GROUP BY gram
)

-- Every gram of round 1 is noised, also those of weight 0 here.
SELECT
    round_1.gram,
    round_1.class,
    round_1.bin,
    round_1.noisy AS first,
    round_1.is_held,
    coalesce(histogram.weight, 0)
    + dphh_noise(CAST(round_1.key AS VARCHAR), $sigma, $purpose || '/round 2') AS second
FROM round_1
LEFT JOIN histogram ON round_1.gram = histogram.gram;

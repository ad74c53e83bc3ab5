-- Round 2 of a level of the forecast ladder, as in ../ngrams/forecast_round_2.sql, over blocks. The
-- g of a gram is the weight of its row, which follows from earlier outputs alone. It is joined to
-- the gram where it lies and brought to the blocks whose users hold the gram: no process ever has
-- more of them than its block.
-- In, private: named_blocks; held; round_1; other_words. In, public: planned (class, bin, weight).
-- Out, private: round_2 (key, class, bin, first, second), both noised weights of the valid grams
-- that somebody holds.

-- Each block after the grams that its users hold.
CREATE TEMP VIEW blocks_and_grams AS
WITH

weighed AS (
    SELECT
        round_1.key,
        planned.weight AS g
    FROM round_1
    INNER JOIN planned ON round_1.class = planned.class AND round_1.bin = planned.bin
),

-- A block's turn is after its grams'. By one number Spark sorts without comparing.
parts AS (
    SELECT
        held.block,
        held.block AS turn,
        weighed.key AS gram,
        weighed.g,
        CAST(NULL AS BINARY) AS user_hashes,
        CAST(NULL AS BINARY) AS lengths,
        CAST(NULL AS BINARY) AS keys
    FROM held
    INNER JOIN weighed ON held.key = weighed.key
    UNION ALL
    SELECT
        block,
        block + 1 AS turn,
        CAST(NULL AS BIGINT) AS gram,
        CAST(NULL AS BIGINT) AS g,
        user_hashes,
        lengths,
        keys
    FROM named_blocks
),

in_turn AS (
    SELECT *
    FROM parts
    DISTRIBUTE BY block
    SORT BY turn
)

SELECT
    block,
    gram,
    g,
    user_hashes,
    lengths,
    keys
FROM in_turn;

CREATE TABLE round_2 AS
WITH

-- floor(norm g / |g|_2) to each gram: a norm of $norm at most, whatever g is.
histogram AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM dphh_shared_contributions(table(blocks_and_grams), $norm)
    GROUP BY key
),

-- Every gram of round 1 gets noise, whether or not anybody gave it something now.
sums AS (
    SELECT
        round_1.key,
        round_1.class,
        round_1.bin,
        round_1.noisy AS first,
        coalesce(histogram.weight, 0) AS weight
    FROM round_1
    LEFT JOIN histogram ON round_1.key = histogram.key
)

SELECT
    sums.key,
    sums.class,
    sums.bin,
    sums.first,
    sums.weight + dphh_noise(
        CASE
            WHEN $is_test
                THEN coalesce('other ' || other_words.word, CAST(sums.key AS STRING))
        END,
        $sigma,
        $purpose || '/round 2'
    ) AS second
FROM sums
LEFT JOIN other_words ON $is_test AND sums.key = other_words.key;

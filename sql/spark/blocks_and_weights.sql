-- Each block after the w of each of its words, by what earlier rounds told of it and by public
-- numbers: most to what stands near the round's threshold. Weights come to blocks on the executors.
-- In: blocks (user_hashes, lengths, positions, words); told_before (key, told), of every word that
-- anybody held. Out: blocks_and_weights (block, place, w, user_hashes, lengths, positions, words).

-- Each block with an even number that depends on its users, by which its words' weights come to it.
CREATE TEMP VIEW blocks_of_round AS
SELECT
    user_hashes,
    lengths,
    positions,
    words,
    shiftleft(xxhash64(user_hashes), 1) AS block
FROM blocks;

CREATE TEMP VIEW lists_of_round AS
SELECT
    block,
    words
FROM blocks_of_round;

CREATE TEMP VIEW blocks_and_weights AS
WITH

weights AS (
    SELECT
        key,
        dphh_weight(
            told, CAST($parts AS BIGINT), CAST($deviation AS BIGINT), CAST($threshold AS BIGINT)
        ) AS w
    FROM told_before
),

keys_of_blocks AS (
    SELECT
        block,
        place,
        key
    FROM dphh_words_of_blocks(table(lists_of_round))
),

-- A block's turn is after its weights'. By one number Spark sorts without comparing.
parts AS (
    SELECT
        keys_of_blocks.block,
        keys_of_blocks.block AS turn,
        keys_of_blocks.place,
        weights.w,
        CAST(NULL AS BINARY) AS user_hashes,
        CAST(NULL AS BINARY) AS lengths,
        CAST(NULL AS BINARY) AS positions,
        CAST(NULL AS BINARY) AS words
    FROM keys_of_blocks
    INNER JOIN weights ON keys_of_blocks.key = weights.key
    UNION ALL
    SELECT
        block,
        block + 1 AS turn,
        CAST(NULL AS BIGINT) AS place,
        CAST(NULL AS BIGINT) AS w,
        user_hashes,
        lengths,
        positions,
        words
    FROM blocks_of_round
),

in_turn AS (
    SELECT *
    FROM parts
    DISTRIBUTE BY block
    SORT BY turn
)

SELECT
    block,
    place,
    w,
    user_hashes,
    lengths,
    positions,
    words
FROM in_turn;

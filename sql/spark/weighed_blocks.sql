-- w of each word of each block, by what earlier rounds told of it and by public numbers: most to
-- what stands near the round's threshold. Weights come to blocks on the executors.
-- In: numbered_blocks (block, user_hashes, lengths, positions, words); told_before (key, told), of
-- every word that anybody held. Out: weighed_blocks (user_hashes, lengths, positions, words,
-- weights).
CREATE TABLE weighed_blocks AS
WITH

keys_of_blocks AS (
    SELECT
        block,
        place,
        key
    FROM dphh_keys_of_blocks(table(numbered_blocks))
),

weighed AS (
    SELECT
        keys_of_blocks.block,
        keys_of_blocks.place,
        dphh_weight(
            told_before.told,
            CAST($parts AS BIGINT),
            CAST($deviation AS BIGINT),
            CAST($threshold AS BIGINT)
        ) AS w
    FROM keys_of_blocks
    INNER JOIN told_before ON keys_of_blocks.key = told_before.key
),

weights AS (
    SELECT
        block,
        collect_list(struct(place, w)) AS weights
    FROM weighed
    GROUP BY block
)

SELECT
    numbered_blocks.user_hashes,
    numbered_blocks.lengths,
    numbered_blocks.positions,
    numbered_blocks.words,
    weights.weights
FROM numbered_blocks
INNER JOIN weights ON numbered_blocks.block = weights.block;

-- w of each word of each block, by what earlier rounds told of it and by public numbers: most to
-- what stands near the round's threshold. Weights come to blocks on the executors.
-- In: numbered_blocks (block, user_hashes, lengths, positions, words); told_before (key, told), of
-- every word that anybody held. Out: weighed_blocks (user_hashes, lengths, positions, words,
-- weights).
CREATE TABLE weighed_blocks AS
WITH

words_of_blocks AS (
    SELECT
        block,
        number,
        word
    FROM dphh_words_of_blocks(table(numbered_blocks))
),

weighed AS (
    SELECT
        words_of_blocks.block,
        words_of_blocks.number,
        dphh_weight(
            told_before.told,
            CAST($parts AS BIGINT),
            CAST($deviation AS BIGINT),
            CAST($threshold AS BIGINT)
        ) AS w
    FROM words_of_blocks
    INNER JOIN told_before ON words_of_blocks.word = told_before.key
),

weights AS (
    SELECT
        block,
        collect_list(struct(number, w)) AS weights
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

-- An exception: on DuckDB and Polars a function looks up what is private, in the same process.
-- Here a join brings to each block the values of the keys that it has, before the block itself.
-- In: blocks (whole, block), whole users by an even number; keys_of_blocks (block, place, key), the
-- keys of each block, each once; brought_values (key, value).
-- Returns (block, place, value, whole), sorted in each partition: a block comes after its values.
WITH

-- By one number Spark sorts without comparing.
parts AS (
    SELECT
        keys_of_blocks.block,
        keys_of_blocks.block AS turn,
        keys_of_blocks.place,
        CAST(brought_values.value AS BIGINT) AS value,
        NULL AS whole
    FROM keys_of_blocks
    INNER JOIN brought_values ON keys_of_blocks.key = brought_values.key
    UNION ALL
    SELECT block, block + 1 AS turn, NULL AS place, NULL AS value, whole
    FROM blocks
)

SELECT block, place, value, whole
FROM parts
DISTRIBUTE BY block
SORT BY turn;

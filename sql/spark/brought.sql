-- Only for Spark: on DuckDB and Polars a function looks up private values within one process. Here
-- keys are divided into parts, and one task gets the values of a part's keys and, from each block,
-- the keys of that part.
-- In: brought_values (key, value); keys_of_blocks (part, block, places, keys), of each block its
-- keys in each part.
-- Returns (key, value, block, places, keys): in each partition all values of its parts come first.
WITH

parts AS (
    SELECT
        dphh_part(key) AS part,
        0 AS turn,
        key,
        CAST(value AS BIGINT) AS value,
        NULL AS block,
        NULL AS places,
        NULL AS keys
    FROM brought_values
    UNION ALL
    SELECT part, 1 AS turn, NULL AS key, NULL AS value, block, places, keys
    FROM keys_of_blocks
)

SELECT key, value, block, places, keys
FROM parts
DISTRIBUTE BY part
SORT BY turn;

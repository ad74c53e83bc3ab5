-- Blocks with the numbers that their keys have among the released ones, where these are more than
-- are sent to every worker: the distinct keys of each block are joined with the released keys, and
-- brought back to their block. No process has more of them than its block.
-- In: unplaced (user_hashes, lengths, positions or keys, words); keys_to_look_up (block, place,
-- key), the keys of each block; rung (key, number), the released keys, public. Out:
-- blocks_and_numbers, as unplaced, with numbers (place, number).
CREATE TEMP VIEW blocks_and_numbers AS
WITH

-- A number that depends on a block's users alone, by which its keys come back to it.
named AS (
    SELECT
        unplaced.*,
        xxhash64(unplaced.user_hashes) AS block
    FROM unplaced
),

numbers AS (
    SELECT
        keys_to_look_up.block,
        collect_list(struct(keys_to_look_up.place, rung.number)) AS numbers
    FROM keys_to_look_up
    INNER JOIN rung ON keys_to_look_up.key = rung.key
    GROUP BY keys_to_look_up.block
)

SELECT
    named.*,  -- noqa: AM04
    numbers.numbers
FROM named
LEFT JOIN numbers ON named.block = numbers.block;

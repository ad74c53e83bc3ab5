-- A later round: each user's distinct words, of which those of the largest w count, weighed by it
-- (udfs/kernel/contributions.py); all others with 0. The users of a block are one sum.
-- In: blocks_and_weights (block, place, w, user_hashes, lengths, positions, words). Out:
-- contributions (key, weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_contributions(table(blocks_and_weights));

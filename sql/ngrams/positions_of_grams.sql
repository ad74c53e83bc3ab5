-- Where the next level's valid grams, of k tokens, stand. A gram is valid if its two pieces were
-- released: its first k - 1 tokens, and its last k - 1 tokens, one position ahead.
-- DPNE, Algorithm 1, at k > 2: U_i <- W_i n V_k, as positions_of_words.sql has it at k = 2.
-- In: positions (block, user_hashes, lengths, keys) of this level; $released, its released keys and
-- their numbers.
-- Out: next_positions (block, user_hashes, lengths, keys); key = left * 2^32 + right, by the
-- numbers of the pieces.
CREATE TEMP TABLE next_positions AS
WITH

-- The join with the rung below: at each position the number of the released gram, -1 for none.
released AS (
    SELECT block, user_hashes, lengths, dphh_numbers_of_grams(keys, $released) AS grams
    FROM positions
),

-- W_i <- G_k(w_i), of which V_k has those whose two pieces were released. dphh_pairs gives the
-- keys, and drops the positions that can be part of no valid gram.
candidates AS (
    SELECT block, user_hashes, dphh_pairs(lengths, grams) AS pairs
    FROM released
)

SELECT candidates.block, candidates.user_hashes, candidates.pairs.lengths, candidates.pairs.keys
FROM candidates;

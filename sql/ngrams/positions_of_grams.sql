-- Where the next level's valid grams, of k tokens, stand. A gram is valid if its two pieces were
-- released: its first k - 1 tokens, and its end. With pruning on both sides the end is the last
-- k - 1 tokens, one position ahead; with pruning on a single side, the last token, k - 1 ahead.
-- DPNE, Algorithm 1, at k > 2: U_i <- W_i n V_k, as positions_of_words.sql has it at k = 2.
-- In: positions (user_hashes, lengths, keys, ends) of this level; $released, its released keys and
-- their numbers.
-- Out: next_positions (user_hashes, lengths, keys, ends); key = left * 2^32 + right, by the numbers
-- of the pieces.
CREATE TEMP TABLE next_positions AS
WITH

-- The join with the rung below: at each position the number of the released gram, -1 for none.
released AS (
    SELECT user_hashes, lengths, dphh_numbers_of_grams(keys, $released) AS grams, ends
    FROM positions
),

-- W_i <- G_k(w_i), of which V_k has those whose two pieces were released. dphh_pairs gives the
-- keys, and drops the positions that can be part of no valid gram.
candidates AS (
    SELECT user_hashes, dphh_pairs(lengths, grams, ends, $positions_ahead) AS pairs, ends
    FROM released
)

SELECT candidates.user_hashes, candidates.pairs.lengths, candidates.pairs.keys, candidates.ends
FROM candidates;

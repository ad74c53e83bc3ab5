-- Where valid grams of two words stand: at each position the key of the pair that begins there, -1
-- for none. A pair is valid where both words were released; they stand side by side in one text.
-- Positions that can be part of no pair are dropped.
-- DPNE, Algorithm 1, at k = 2, with w_i in `users`: U_i <- W_i n V_k, with every occurrence of a
-- gram; grams_level.sql makes it a set.
-- In: users (block, user_hashes, lengths, ids, words); $released, the released words and their
-- numbers.
-- Out: next_positions (block, user_hashes, lengths, keys), with the blocks and users of `users`;
-- key = left * 2^32 + right, by the numbers of the two words.
CREATE TEMP TABLE next_positions AS
WITH

-- The join with the rung below: at each position the number of the released word, -1 for none.
released AS (
    SELECT block, user_hashes, lengths, dphh_numbers_of_words(ids, words, $released) AS grams
    FROM users
),

-- W_i <- G_k(w_i), the k-grams of a user's texts, of which V_k has those whose two words were
-- released. dphh_pairs gives the keys, and drops the positions that can be part of no valid gram.
candidates AS (
    SELECT block, user_hashes, dphh_pairs(lengths, grams) AS pairs
    FROM released
)

SELECT candidates.block, candidates.user_hashes, candidates.pairs.lengths, candidates.pairs.keys
FROM candidates;

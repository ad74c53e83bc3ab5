-- Where the next level's valid grams, of k tokens, stand. A gram is valid if its two pieces were
-- released: its first k - 1 tokens, and its last k - 1 tokens, one position ahead in the same text.
-- DPNE, Algorithm 1, with w_i in `users`: W_i <- G_k(w_i), the k-grams of a user's texts, and
-- U_i <- W_i n V_k, with every occurrence of a gram; grams_level.sql makes it a set.
-- In: numbered (block, user_hashes, lengths, grams), where released pieces stand.
-- Out: next_positions (block, user_hashes, lengths, keys), with the same blocks and users: at each
-- position the key of the gram that begins there, -1 for none; key = left * 2^32 + right, by the
-- numbers of the pieces. Positions that can be part of no valid gram are dropped.
CREATE TEMP TABLE next_positions AS
WITH

candidates AS (
    SELECT block, user_hashes, dphh_pairs(lengths, grams) AS pairs
    FROM numbered
)

SELECT candidates.block, candidates.user_hashes, candidates.pairs.lengths, candidates.pairs.keys
FROM candidates;

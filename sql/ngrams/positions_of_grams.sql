-- Where the next level's valid grams stand: all that it needs to see. A gram is valid where its
-- pieces were released: its first k - 1 tokens, and its last k - 1 (pruning on both sides: a
-- released gram one place ahead) or its last one (on a single side: a released word k - 1 places
-- ahead).
-- DPNE, Algorithm 1, at k > 2: G_k(w_i) and V_k, as positions_of_words.sql has them at k = 2.
-- In: positions (lots, lengths, keys, words) of this level; its released keys, told to
-- dphh_places_of_grams.
-- Out: next_positions (lots, lengths, keys, words); key = left * 2^32 + right, by the numbers of
-- the pieces.
CREATE TEMP TABLE next_positions AS
WITH

places AS (
    SELECT
        lots,
        lengths,
        dphh_places_of_grams(keys) AS grams,
        words
    FROM positions
),

candidates AS (
    SELECT
        lots,
        dphh_pairs(lengths, grams, words, $ahead) AS pairs,
        words
    FROM places
)

SELECT
    lots,
    pairs['lengths'] AS lengths,
    pairs['keys'] AS keys,
    words
FROM candidates;

-- One round of differentially private set union over words, by the weighted Gaussian policy (Gopi
-- et al. 2020): every user adds a vector of L2 norm at most 2^b over the words they hold.
-- Every word that any user holds is noised, even if all its weights are 0, since the weights of a
-- next round may depend on the noised weights. If a word that no user keeps were left out, a new
-- user who keeps it would change what all its other holders give.
-- In: users (user_hashes, lengths, ids, words), each row with lists of many whole users; $released,
-- the words that earlier rounds released, NULL if there were none; $w, the w of each word where
-- weights depend on earlier rounds, else NULL.
-- Out: noised (key, has_weight, noisy), drawn once, because the noise is stored in a table before
-- anything reads it; has_weight: whether any user put weight on the word.
-- In DPNE (Kim et al. 2021) this is "S_1 <- Run DPSU with Delta_1, rho_1, sigma_1" of Algorithm 1,
-- and all of Algorithm 5 but the threshold, which is in released_words.sql. w_i, the texts of a
-- user, are in `users`.
CREATE TEMP TABLE noised AS
WITH

-- Algorithm 5: the set of a user's items, Delta_1 of them at random, 1 / sqrt(|U_i|) to each.
-- DP-SIPS: without the items that earlier rounds released.
-- Each whole user adds the weight floor(2^b / sqrt(t)) to each of t words, at most $max_items; or,
-- where words have w, floor(2^b w / |w|) to each of the $max_items words of the largest w; to all
-- other words 0 (udfs/kernel/contributions.py). The function sums a batch of users, in the batch's
-- first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_words(
                user_hashes, lengths, ids, words, $released, $max_items, $grid_bits, $salt, $w
            )
        ) AS contribution
    FROM users
),

-- Algorithm 5: H[u], summed over users.
histogram AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- Algorithm 5: H[u] + N(0, sigma_1^2). In tests the noise depends on a word's spelling. In a run it
-- does not, so spellings are looked up for released words alone (released_words.sql).
SELECT
    key,
    weight > 0 AS has_weight,
    weight + dphh_noise(CASE WHEN $is_test THEN dphh_spelled(key) END, $sigma, $purpose) AS noisy
FROM histogram;

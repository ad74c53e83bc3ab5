-- DPNE above the first level (Kim et al. 2021, Algorithm 1, the loop over k): the same set union as
-- words_of_round.sql, over valid grams. A valid gram that no user keeps has weight 0 and no row.
-- "For u in V_k: H_k[u] <- 0" is therefore not here but drawn, as the paper does it ("Scaling up
-- DPNE"), in spurious.sql; V_k is never written down (the specification does, in `absent`).
-- The loop over k is dphh/mechanisms/ngrams/dpne.py, which computes rho_k before each level; users'
-- texts, w_i, are `users`, which sql/rows/gather_texts.sql has made. U_i <- W_i n V_k is in
-- valid_grams.sql.
-- In: positions (user_hashes, lengths, keys), where valid grams stand: U_i, before it is a set.
-- Out: noised (key, noisy), drawn once.
CREATE TEMP TABLE noised AS
WITH

-- If |U_i| > Delta_k, choose Delta_k of U_i at random; 1 / sqrt(|U_i|) to each.
-- Each whole user adds the weight floor(2^b / sqrt(t)) to each of t grams, at most $max_items
-- (udfs/kernel/contributions.py). The function sums a batch of users, in the batch's first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_grams(
                user_hashes, lengths, keys, $max_items, $grid_bits, $salt
            )
        ) AS contribution
    FROM positions
),

-- H_k[u], summed over users.
histogram AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- H_k[u] + N(0, sigma_k^2). released_grams.sql puts grams above rho_k into S_k. In tests the noise
-- depends on a gram's key, in a run it does not.
SELECT
    key,
    weight + dphh_noise(
        CASE WHEN $is_test THEN CAST(key AS VARCHAR) END, $sigma, $purpose
    ) AS noisy
FROM histogram;

-- DPNE above the first level (Kim et al. 2021, Algorithm 1, the loop over k): the same set union as
-- words_level.sql, over the valid grams that somebody holds and keeps. All others, held or not,
-- have a weight of 0 and no row.
-- "For u in V_k: H_k[u] <- 0" is therefore not here but drawn, as the paper does it ("Scaling up
-- DPNE"), in lifted.sql; V_k is never written down (sql/plain/dpne_level.sql does, in `absent`).
-- In: positions (user_hashes, lengths, keys, words), where valid grams stand. Out: noised (key,
-- noisy), drawn once.
CREATE TEMP TABLE noised AS
WITH

-- U_i <- W_i n V_k; if |U_i| > Delta_k, choose Delta_k of it; 1 / sqrt(|U_i|) to each.
-- Of each whole user the distinct grams that count, $max_items at most, and floor(2^b / sqrt(t))
-- for each of the t that do (udfs/kernel/contributions.py). What the users of a batch of
-- rows add together stands in its first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_grams(
                user_hashes, lengths, keys, $max_items, $grid_bits, CAST($salt AS UBIGINT)
            )
        ) AS contribution
    FROM positions
),

-- H_k[u], summed over users.
histogram AS (
    SELECT
        contribution.key,
        CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- H_k[u] + N(0, sigma_k^2). What of it is above rho_k goes to S_k in released_grams.sql.
SELECT
    key,
    weight + dphh_noise(CAST(key AS VARCHAR), $sigma, $purpose) AS noisy
FROM histogram;

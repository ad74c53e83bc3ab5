-- One level of differentially private set union over words, by the weighted Gaussian policy
-- (Gopi et al. 2020): every user spreads a vector of L2 norm at most 2^b over what they hold.
-- In: users (lots, lengths, codes), several short ones a row. Out: noised (code, noisy), drawn
-- once: nothing reads the noise before it stands in a table.
-- Of DPNE's Algorithm 1 (Kim et al. 2021) this is "S_1 <- Run DPSU with Delta_1, rho_1, sigma_1",
-- and of its Algorithm 5 all but the threshold, which is in released_words.sql.
CREATE TEMP TABLE noised AS
WITH

-- Algorithm 5: the set of a user's items, Delta_1 of them at random, 1 / sqrt(|U_i|) to each.
-- Of each whole user the distinct words that count, $max_items at most, and floor(2^b / sqrt(t))
-- for each of the t that do (udfs/kernel/contributions.py). What the users of a batch of
-- rows add together stands in its first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_words(
                lots, lengths, codes, $max_items, $grid_bits, CAST($salt AS UBIGINT)
            )
        ) AS contribution
    FROM users
),

-- Algorithm 5: H[u], summed over users.
histogram AS (
    SELECT
        contribution.key AS code,
        CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
),

-- A test's draws hang on how a word is spelled, a run's on nothing: there only what is released is
-- spelled (released_words.sql).
named AS (
    SELECT
        code,
        weight,
        CASE WHEN $is_test THEN dphh_spelled(code) END AS name
    FROM histogram
)

-- Algorithm 5: H[u] + N(0, sigma_1^2), of the items that somebody holds and of no others.
SELECT
    code,
    weight + dphh_noise(name, $sigma, $purpose) AS noisy
FROM named;

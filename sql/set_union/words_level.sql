-- One level of differentially private set union over words, by the weighted Gaussian policy
-- (Gopi et al. 2020): every user spreads a vector of L2 norm at most 2^b over what they hold.
-- In: users (lots, lengths, codes), several short ones a row. Out: noised (code, noisy), drawn
-- once: nothing reads the noise before it stands in a table.
CREATE TEMP TABLE noised AS
WITH

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

SELECT
    code,
    weight + dphh_noise(name, $sigma, $purpose) AS noisy
FROM named;

-- How many users hold each public key, and what bounding removed from users, with Gaussian noise.
-- All these numbers are released, so which keys are released does not depend on the data. (By other
-- rules: how many users roughly; how many users hold how much.)
-- In: counted_users (block, lengths, ids, caps): ids are keys, caps the users' own or NULL; asked
-- (key), all public keys, and one for the loss; $rule, how much a user adds to each key held. Out:
-- noised (key, noisy), drawn once: it is stored before it is read.
CREATE TEMP TABLE noised AS
WITH

-- A user who holds at most K = max_items keys adds one user to each of them. A user who holds more
-- adds less to each, and adds what bounding removed to the loss. So the L2 norm is bounded
-- (udfs/rules/counts.py). The function sums a batch, in its first row.
users_contributions AS (
    SELECT unnest(dphh_contributions_to_counts(lengths, ids, caps, $rule)) AS contribution
    FROM counted_users
),

sums AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- The noise does not depend on the key: dphh_noise takes it as a name, which only tests use.
SELECT
    asked.key,
    coalesce(sums.weight, 0) + dphh_noise(CAST(asked.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM asked
LEFT JOIN sums ON asked.key = sums.key;

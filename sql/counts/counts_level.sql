-- How many users hold each of a list of public keys, and what bounding removed: a Gaussian vector.
-- Every coordinate is released, so the set of released keys does not depend on the data.
-- In: counted_users (user_hashes, lengths, ids, words): ids are keys; asked (key), all keys and
-- octaves. Out: noised (key, noisy), drawn once, because it is stored in a table first.
CREATE TEMP TABLE noised AS
WITH

-- One user to each key that a user holds, or less if they hold more than max_items keys; then the
-- loss is added to an octave (udfs/kernel/given_grams.py): a vector of a bounded L2 norm. The first
-- row of a batch has the sums over all users of the batch.
users_contributions AS (
    SELECT unnest(dphh_contributions_to_counts(lengths, ids, $weighing)) AS contribution
    FROM counted_users
),

sums AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- The noise is no function of the key: dphh_noise takes it as a name, by which tests draw alone.
SELECT
    asked.key,
    coalesce(sums.weight, 0) + dphh_noise(CAST(asked.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM asked
LEFT JOIN sums ON asked.key = sums.key;

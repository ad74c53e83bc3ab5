-- How many users hold each of a list of public keys, and what bounding removed: a Gaussian vector.
-- Every coordinate is released, so the set of released keys does not depend on the data.
-- In: counted_users (user_hashes, lengths, ids, words): ids are keys; asked (key), all keys and
-- octaves. Out: noised (key, noisy), drawn once, because it is stored in a table first.
CREATE TEMP TABLE noised AS
WITH

-- A user adds one user to each key that they hold, or less if they hold more than K = max_items.
-- Then what bounding removed is added to the user's octave, of all users who hold K to 2K keys, 2K
-- to 4K and so on (udfs/kernel/given_grams.py): a vector of a bounded L2 norm. The first row of a
-- batch has the sums over all users of the batch.
users_contributions AS (
    SELECT unnest(dphh_contributions_to_counts(lengths, ids, $weighing)) AS contribution
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

-- What whole users add: one user to each key that they hold, or less if they hold more than
-- max_items keys; then the loss is added to an octave (udfs/kernel/given_grams.py). The first row
-- of a batch has the sums over all users of the batch.
-- In: counted_users (user_hashes, lengths, ids). Out: contributions (key, weight).
CREATE TEMP TABLE contributions AS
WITH

of_batches AS (
    SELECT unnest(dphh_counted(lengths, ids)) AS contribution
    FROM counted_users
)

SELECT
    contribution['key'] AS key,
    contribution['weight'] AS weight
FROM of_batches;

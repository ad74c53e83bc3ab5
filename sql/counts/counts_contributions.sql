-- What whole users add: one user to each key held, or less where these are more than max_items; and
-- to the octave of their number what that took from each (udfs/kernel/given_grams.py). What the
-- users of a batch of rows add together stands in its first row.
-- In: counted_users (lots, lengths, codes). Out: contributions (key, weight).
CREATE TEMP TABLE contributions AS
WITH

of_batches AS (
    SELECT unnest(dphh_counted(lengths, codes)) AS contribution
    FROM counted_users
)

SELECT
    contribution['key'] AS key,
    contribution['weight'] AS weight
FROM of_batches;

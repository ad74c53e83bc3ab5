-- The exact number of users who hold each key: for the owner of the data, never for a release.
-- In: users (user_hashes, lengths, ids).
WITH

-- One for each user who holds the key; the first row of a batch has the sums over all its users.
holders AS (
    SELECT unnest(dphh_holders(user_hashes, lengths, ids)) AS holder
    FROM users
),

counts AS (
    SELECT
        holder.key AS word_id,
        CAST(sum(holder.weight) AS BIGINT) AS users
    FROM holders
    GROUP BY holder.key
    HAVING sum(holder.weight) >= $at_least
)

SELECT
    users,
    dphh_spelled(word_id) AS key
FROM counts
ORDER BY users DESC, key ASC;

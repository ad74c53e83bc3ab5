-- The exact number of users who hold each key: for the owner of the data, never for a release.
-- In: users (lots, lengths, codes).
WITH

-- One for each user who holds the key; the first row of a batch has the sums over all its users.
holders AS (
    SELECT unnest(dphh_holders(lots, lengths, codes)) AS holder
    FROM users
),

counts AS (
    SELECT
        holder.key AS code,
        CAST(sum(holder.weight) AS BIGINT) AS users
    FROM holders
    GROUP BY holder.key
    HAVING sum(holder.weight) >= $at_least
)

SELECT
    users,
    dphh_spelled(code) AS key
FROM counts
ORDER BY users DESC, key ASC;

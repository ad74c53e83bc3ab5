-- How many users hold each key, exactly: for the owner's eyes, never for a release.
-- In: blocks (user_hashes, lengths, positions, words).
WITH

-- One for each user who holds the key, without bounding; the users of a block are one sum.
holders AS (
    SELECT
        key,
        weight
    FROM dphh_holders(table(blocks))
)

SELECT
    key,
    CAST(sum(weight) AS BIGINT) AS users
FROM holders
GROUP BY key
HAVING sum(weight) >= $at_least
ORDER BY users DESC, key ASC;

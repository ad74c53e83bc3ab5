-- How many users hold how much of a list of public keys. K, what bounds a user, follows.
-- In: held (user_id, key); factors (key, factor).
-- Out: histogram (key, noisy), the bins: the first for users of the least m there can be, the sum
-- of the squared factors of a user's keys; each up to 1.4 times as many as the one before, and one
-- more at least; the last up to all keys. Of $groups groups, users of several have bins of their
-- own, after the others.
CREATE OR REPLACE TEMP TABLE histogram AS
WITH RECURSIVE

ends AS (
    SELECT min(factor * factor) AS least, sum(factor * factor) AS most
    FROM factors
),

bins (number, top) AS (
    SELECT 0, CAST(least AS BIGINT)
    FROM ends
    UNION ALL
    SELECT
        bins.number + 1,
        CAST(least(greatest(bins.top + 1, bins.top * 7 // 5), ends.most) AS BIGINT)
    FROM bins, ends
    WHERE bins.top < ends.most
),

numbers AS (
    SELECT
        held.user_id,
        sum(factors.factor * factors.factor) AS number,
        CAST(min(held.key % $groups) < max(held.key % $groups) AS INTEGER) AS in_several
    FROM held
    INNER JOIN factors ON held.key = factors.key
    GROUP BY held.user_id
),

-- A user who holds some keys adds 1 to the first bin whose top is at least the user's m.
contributions AS (
    SELECT numbers.user_id, numbers.in_several, min(bins.number) AS number
    FROM numbers
    INNER JOIN bins ON numbers.number <= bins.top
    GROUP BY numbers.user_id, numbers.in_several
),

coordinates AS (
    SELECT
        bins.number,
        parts.range AS in_several,
        row_number() OVER (ORDER BY parts.range, bins.number) - 1 AS key
    FROM bins, range(least($groups, 2)) AS parts
)

SELECT
    coordinates.key,
    count(contributions.user_id)
    + dphh_noise(CAST(coordinates.key AS VARCHAR), $sigma, $purpose) AS noisy
FROM coordinates
LEFT JOIN contributions
    ON
        coordinates.number = contributions.number
        AND coordinates.in_several = contributions.in_several
GROUP BY coordinates.key;

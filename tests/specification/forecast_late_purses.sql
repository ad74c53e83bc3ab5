-- The forecast ladder, before the late rounds (step 9 of docs/ngrams.md): a histogram of users who
-- held a valid gram of any level, by the highest such level and by which eighth of a full purse
-- they have left. For this each of them spends $first, or what is left.
-- In: purses. Out: user_counts (bin, noisy); purses, after this.
CREATE OR REPLACE TEMP TABLE spending AS
SELECT
    user_id,
    dphh_free(purse, dphh_expected(finds, 0, 0), $reserve) AS beside_reserve,
    8 * (top - 2) + least(beside_reserve * 8 // greatest($full_purse, 1), 7) AS bin,
    least(beside_reserve, $first) AS spent
FROM purses
WHERE top > 0;

CREATE OR REPLACE TEMP TABLE user_counts AS
WITH

histogram AS (
    SELECT bin, CAST(sum(dphh_isqrt(spent)) AS BIGINT) AS weight
    FROM spending
    GROUP BY bin
),

-- Every bin is noised, also empty ones.
bins_of_users AS (
    SELECT range AS bin
    FROM range(8 * ($highest_level - 1))
)

SELECT
    bins_of_users.bin,
    coalesce(histogram.weight, 0)
    + dphh_noise(CAST(-1 - bins_of_users.bin AS VARCHAR), $sigma, $purpose || '/users') AS noisy
FROM bins_of_users
LEFT JOIN histogram ON bins_of_users.bin = histogram.bin;

CREATE OR REPLACE TEMP TABLE purses AS
SELECT
    purses.user_id,
    purses.purse - coalesce(spending.spent, 0) AS purse,
    purses.top,
    purses.finds
FROM purses
LEFT JOIN spending ON purses.user_id = spending.user_id;

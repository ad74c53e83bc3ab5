-- The forecast ladder, round 1 (step 2 of docs/ngrams.md): two histograms of users: by how many
-- grams they hold, in bins; and, below these bins, by cell of the purse: how far the user can
-- climb, and which eighth of a full purse the user had. A hundredth of what a user spends is the
-- squared weight in each; round 1's equal weights take the rest. In runs that count what they find,
-- a third is by how many finds the user is expected to hold, for five hundredths.
-- In: spending; $list_sizes, the lower end of each bin. Out: user_counts (bin, noisy).
CREATE OR REPLACE TEMP TABLE user_counts AS
WITH

weighed AS (
    SELECT
        len(list_filter($list_sizes, lambda size: size <= number)) - 1 AS bin_of_size,
        len($list_sizes) + 8 * climb
        + least(purse * 8 // greatest($full_purse, 1), 7) AS bin_of_purse,
        len($list_sizes) + 8 * ($levels_after + 1)
        + len(list_filter($list_sizes, lambda size: size <= greatest(expected, 1))) - 1
            AS bin_of_finds,
        dphh_isqrt(spent // 100) AS weight,
        dphh_isqrt(spent * 5 // 100) AS weight_of_finds
    FROM spending
),

in_bins AS (
    SELECT bin_of_size AS bin, weight FROM weighed
    UNION ALL
    SELECT bin_of_purse AS bin, weight FROM weighed
    UNION ALL
    SELECT bin_of_finds AS bin, weight_of_finds AS weight FROM weighed
    WHERE $reserve[1] > 0
),

histogram AS (
    SELECT bin, CAST(sum(weight) AS BIGINT) AS weight
    FROM in_bins
    GROUP BY bin
),

-- Every bin is noised, also empty ones.
bins_of_users AS (
    SELECT range AS bin
    FROM range(
        len($list_sizes) + 8 * ($levels_after + 1)
        + CASE WHEN $reserve[1] > 0 THEN len($list_sizes) ELSE 0 END
    )
)

SELECT
    bins_of_users.bin,
    coalesce(histogram.weight, 0)
    + dphh_noise(CAST(-1 - bins_of_users.bin AS VARCHAR), $sigma, $purpose || '/users') AS noisy
FROM bins_of_users
LEFT JOIN histogram ON bins_of_users.bin = histogram.bin;

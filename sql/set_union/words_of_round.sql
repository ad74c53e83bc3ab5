-- One of several rounds of a set union over words, whose weights depend on earlier rounds. Unlike
-- words_level.sql, it noises every word that any user holds, even if all its weights are 0, since
-- the next round's weights depend on the noised weights. If a word that no user keeps were left
-- out, a new user who keeps it would change what all its other holders give.
-- In: users (user_hashes, lengths, ids, words); $w, the w of each word, and $released, the words
-- that earlier rounds released: both NULL in the first round.
-- Out: noised (key, has_weight, noisy), drawn once; has_weight: whether any user put weight on the
-- word.
CREATE TEMP TABLE noised AS
WITH

-- DP-SIPS: without the words that earlier rounds released.
remaining AS (
    SELECT
        user_hashes,
        lengths,
        dphh_unreleased(ids, words, $released) AS ids,
        words,
        $w AS w_of_words
    FROM users
),

-- Each whole user adds floor(2^b w / |w|) to each of the $max_items words of the largest w
-- (udfs/kernel/contributions.py), or in the first round equal weights to any $max_items words; to
-- all other words it adds 0. The function sums a batch of users, in the batch's first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_by_w(
                user_hashes, lengths, ids, words, $max_items, $grid_bits, $salt, w_of_words
            )
        ) AS contribution
    FROM remaining
),

histogram AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

SELECT
    key,
    weight > 0 AS has_weight,
    weight + dphh_noise(CASE WHEN $is_test THEN dphh_spelled(key) END, $sigma, $purpose) AS noisy
FROM histogram;

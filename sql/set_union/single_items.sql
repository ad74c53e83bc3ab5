-- Optimal selection for users of one item (Desfontaines, Voss, Gipson & Mandayam 2022): each user
-- adds 1 to one word, and each count has truncated geometric noise. What is above the noise's reach
-- is released (released_words.sql). A word that no user keeps never does, whatever its noise.
-- In: users (user_hashes, lengths, ids, words), each row with lists of many whole users.
-- Out: noised (key, has_weight, noisy), drawn once, because the noise is stored in a table before
-- anything reads it; has_weight: whether any user keeps the word.
CREATE TEMP TABLE noised AS
WITH

-- Of a user's words, the one with the smallest hash of word, user and salt: its weight is 1, those
-- of all others are 0.
users_contributions AS (
    SELECT
        unnest(
            dphh_contributions_of_words(
                user_hashes, lengths, ids, words, NULL, $max_items, $grid_bits, $salt, NULL
            )
        ) AS contribution
    FROM users
),

counts AS (
    SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
)

-- In tests the noise depends on a word's spelling; in a run it does not.
SELECT
    key,
    weight > 0 AS has_weight,
    weight + dphh_truncated_noise(
        CASE WHEN $is_test THEN dphh_spelled(key) END, $ratio, $reach, $edge, $purpose
    ) AS noisy
FROM counts;

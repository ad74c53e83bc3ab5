-- One of several rounds of a set union over words, whose weights follow earlier rounds: as
-- words_level.sql, but that every word that anybody holds has its noise, also where nobody keeps it
-- or gives it anything, since the next round's weights follow from noised weights. Were a word that
-- nobody keeps left out, a newcomer who keeps it would change what all its other holders give.
-- In: users (lots, lengths, codes); what earlier rounds made of each word, looked up by $w.
-- Out: noised (code, given, noisy), drawn once; given: whether anybody gave it something.
CREATE TEMP TABLE noised AS
WITH

-- Of each whole user the $max_items words of the largest w, with floor(2^b w / |w|) for each
-- (udfs/kernel/contributions.py), in the first round any $max_items and equal weights; and all
-- others with 0. What the users of a batch of rows add together stands in its first row.
users_contributions AS (
    SELECT
        unnest(
            dphh_given_to_words(
                lots, lengths, codes, $max_items, $grid_bits, CAST($salt AS UBIGINT), $w
            )
        ) AS contribution
    FROM users
),

histogram AS (
    SELECT
        contribution.key AS code,
        CAST(sum(contribution.weight) AS BIGINT) AS weight
    FROM users_contributions
    GROUP BY contribution.key
),

named AS (
    SELECT
        code,
        weight,
        CASE WHEN $is_test THEN dphh_spelled(code) END AS name
    FROM histogram
)

SELECT
    code,
    weight > 0 AS given,
    weight + dphh_noise(name, $sigma, $purpose) AS noisy
FROM named;

-- Round 1 of a level of the forecast ladder (step 2 of docs/ngrams.md): what every user adds,
-- evenly, to the valid grams that they hold, and the noise of every valid gram, held or not.
-- In, private: positions (block, user_hashes, lengths, keys), where valid grams stand, each row
-- with lists of many whole users; purses (block, purse), what each user may still
-- spend. Level 1 with a list of words has this form too: a listed word's key is its number in
-- the list; the keys of other words are $first_unlisted_key or more (-1: there is no list), and
-- unlisted_words (word, key) has these words.
-- In, public, the forecasts of step 1: forecasts (gram, as_first, as_last, expected_first,
-- expected_last), of each released gram of the level below; lifts (expected, shift) and
-- public_grams (key, class), of a prior; classes (class, valid), how many valid grams there are
-- of each.
-- Out, private: undecided (key, name, first, cell), of the valid grams that a user holds; absent
-- (cell, grams), of those that no user holds. A cell is a class and one of $bins bins of the
-- noised weight, `first`: class * $bins + bin. round_1_sums (key, weight), whose keys below 0 are
-- bins of users: forecast_users.sql.

-- A user spends $spending.first of the purse, or what is left of it: adds 98 hundredths of that,
-- evenly, to each of their valid grams; a hundredth to the key -1 - (bin of n), which counts
-- users by their list size n; and a hundredth to the key of the purse's cell, below those. The
-- squares of all weights sum to what is spent at most. If n is so large that a gram gets 0, it
-- has a row all the same, because later rounds ask which grams a user holds.
CREATE TEMP TABLE round_1_sums AS
WITH

users_contributions AS (
    SELECT
        unnest(
            dphh_round_1_contributions(held.lengths, held.keys, purses.purse, $spending)
        ) AS contribution
    FROM positions AS held
    INNER JOIN purses ON held.block = purses.block
)

SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
FROM users_contributions
GROUP BY contribution.key;

-- A gram is a pair, key = first * 2^32 + last, by the numbers of its pieces. Its class follows from
-- the forecasts of its pieces. With a prior, a gram of the public text has the class of its count
-- there; the class of any other gram is shifted by the count there that its pieces forecast.
-- Words outside a list are in class -1.
CREATE TEMP TABLE noised AS
WITH

classed AS (
    SELECT
        round_1_sums.key,
        round_1_sums.weight,
        CASE
            WHEN $first_unlisted_key >= 0 AND round_1_sums.key >= $first_unlisted_key THEN -1
            ELSE coalesce(
                public_grams.class,
                first_piece.as_first + last_piece.as_last + lifts.shift
            )
        END AS class
    FROM round_1_sums
    LEFT JOIN forecasts AS first_piece ON round_1_sums.key >> 32 = first_piece.gram
    LEFT JOIN forecasts AS last_piece ON round_1_sums.key & 4294967295 = last_piece.gram
    LEFT JOIN lifts
        ON first_piece.expected_first + last_piece.expected_last = lifts.expected
    LEFT JOIN public_grams ON round_1_sums.key = public_grams.key
    WHERE round_1_sums.key >= 0
),

-- In tests a gram's name decides its noise. In a run nothing does: it is random.
named AS (
    SELECT
        classed.key,
        classed.weight,
        classed.class,
        CASE
            WHEN $is_test
                THEN coalesce('other ' || unlisted_words.word, CAST(classed.key AS VARCHAR))
        END AS name
    FROM classed
    LEFT JOIN unlisted_words ON $is_test AND classed.key = unlisted_words.key
)

SELECT key, name, class, weight + dphh_noise(name, $sigma, $purpose || '/round 1') AS noisy
FROM named;

-- Words outside a list have only two cells: -2 if the noised weight reaches $unlisted_threshold
-- (round 1 releases these words, and they get no weight in round 2), else -1.
CREATE TEMP TABLE undecided AS
SELECT
    key,
    name,
    noisy AS first,
    CASE
        WHEN class >= 0 THEN class * $bins + dphh_bin(noisy, $sigma)
        ELSE -1 - CAST(noisy >= $unlisted_threshold AS BIGINT)
    END AS cell
FROM noised;

-- Valid grams that no user holds are too many to list. Their sums are 0, so the noise's own law
-- says how many of a class fall into each bin; this is drawn.
CREATE TEMP TABLE absent AS
WITH

held AS (
    SELECT class, count(*) AS grams
    FROM noised
    GROUP BY class
),

absent_grams AS (
    SELECT classes.class, classes.valid - coalesce(held.grams, 0) AS grams
    FROM classes
    LEFT JOIN held ON classes.class = held.class
),

drawn AS (
    SELECT unnest(dphh_absent_cells(class, grams, $sigma, $purpose)) AS fallen
    FROM absent_grams
)

SELECT drawn.fallen.cell, drawn.fallen.grams
FROM drawn;

-- Round 1 of a level of the forecast ladder (step 2 of docs/ngrams.md): what every user adds,
-- evenly, to the valid grams that they hold, and the noise of every valid gram, held or not.
-- In, private: positions (user_hashes, lengths, keys, words), whole users in batches, where valid
-- grams stand. With a list of words, level 1 is of this form: a word's key is its number there,
-- from $others on of words that it lacks. These have noise here, and other_words.sql makes rows of
-- them.
-- In, public, what step 1 foretells: forecasts (gram, as_first, as_last, expected_first,
-- expected_last), of each released gram of the level below; lifts (expected, shift) and
-- public_grams (key, class), of a prior; classes (class, valid), how many valid grams there are of
-- each.
-- Out, private: round_1 (key, noisy, class, bin), of the valid grams that somebody holds; absent
-- (class, bin, grams), of those that nobody holds. Out, public: list_sizes (bin, noisy).

-- Each user gives isqrt(98 norm^2 / 100 n) to each of their n valid grams, and isqrt(norm^2 / 50)
-- to the size of their list, at the key -1 - (bin of n): an L2 norm of $norm at most, in the units
-- of the noise's grid. Where n is so large that this is 0, the gram is named all the same: round 2
-- asks which grams somebody holds.
CREATE TEMP TABLE plain_sums AS
WITH

users_contributions AS (
    SELECT unnest(dphh_plain_contributions(user_hashes, lengths, keys, $norm)) AS contribution
    FROM positions
)

SELECT
    contribution.key,
    CAST(sum(contribution.weight) AS BIGINT) AS weight
FROM users_contributions
GROUP BY contribution.key;

-- Each bin of sizes, also one that no list is of.
CREATE TEMP TABLE list_sizes AS
WITH

bins AS (
    SELECT
        range AS bin,
        -1 - range AS key
    FROM range($list_bins)
)

SELECT
    bins.bin,
    coalesce(plain_sums.weight, 0) + dphh_noise(
        CASE WHEN $is_test THEN CAST(bins.key AS VARCHAR) END, $sigma, $purpose || '/list sizes'
    ) AS noisy
FROM bins
LEFT JOIN plain_sums ON bins.key = plain_sums.key;

CREATE TEMP TABLE noised AS
SELECT
    key,
    weight + dphh_noise(
        CASE WHEN $is_test THEN dphh_name(key, $others) END, $sigma, $purpose || '/round 1'
    ) AS noisy
FROM plain_sums
WHERE key >= 0;

-- A gram is a pair, key = first * 2^32 + last, by the numbers of its pieces. Its row is the class
-- that its pieces foretell, and the bin of its noised weight. With a prior, a gram that the public
-- text has is of the class that its count there says, and of any other what its pieces let expect
-- there takes something off.
CREATE TEMP TABLE round_1 AS
SELECT
    noised.key,
    noised.noisy,
    coalesce(
        public_grams.class,
        first_piece.as_first + last_piece.as_last + lifts.shift
    ) AS class,
    dphh_bin(noised.noisy, $sigma) AS bin
FROM noised
INNER JOIN forecasts AS first_piece ON noised.key >> 32 = first_piece.gram
INNER JOIN forecasts AS last_piece ON noised.key & 4294967295 = last_piece.gram
INNER JOIN lifts
    ON first_piece.expected_first + last_piece.expected_last = lifts.expected
LEFT JOIN public_grams ON noised.key = public_grams.key;

-- Valid grams that nobody holds are too many to write down. Their sums are 0, so how many of a
-- class fall into each bin is drawn by the noise's own law.
CREATE TEMP TABLE absent AS
WITH

held AS (
    SELECT
        class,
        count(*) AS grams
    FROM round_1
    GROUP BY class
),

absent_grams AS (
    SELECT
        classes.class,
        classes.valid - coalesce(held.grams, 0) AS grams
    FROM classes
    LEFT JOIN held ON classes.class = held.class
),

drawn AS (
    SELECT
        class,
        unnest(dphh_absent_bins(class, grams, $sigma, $purpose)) AS fallen
    FROM absent_grams
)

SELECT
    drawn.class,
    drawn.fallen['bin'] AS bin,
    drawn.fallen['grams'] AS grams
FROM drawn;

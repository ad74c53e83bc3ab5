-- Round 1 of a level of the forecast ladder, as in ../ngrams/forecast_round_1.sql, over blocks.
-- In, private: positions (user_hashes, lengths, keys, words); other_words (word, key), of level 1
-- with a list: the words that the list lacks have keys from $others on, which is -1 of no list. In,
-- public: forecasts (gram, as_first, as_last, expected_first, expected_last); lifts (expected,
-- shift) and public_grams (key, class), of a prior; classes (class, valid).
-- Out, private: named_blocks (user_hashes, lengths, keys, block); held (block, key, weight), what
-- the users of a block add to each gram that one holds; round_1 (key, noisy, class, bin), of the
-- valid grams that somebody holds; absent (class, bin, grams), of those that nobody holds, and
-- absent_signs (class, bin, grams, negatives), which round 2 shows. Out, public: list_sizes (bin,
-- noisy).

-- Each block with an even number that depends on its users, by which its grams come back to it.
CREATE TEMP VIEW named_blocks AS
SELECT
    user_hashes,
    lengths,
    keys,
    shiftleft(xxhash64(user_hashes), 1) AS block
FROM positions;

-- A gram is named in each block that holds it, also where its weight is 0: round 2 asks which grams
-- somebody holds, and brings the weights of their rows to the blocks.
CREATE TABLE held AS
SELECT
    block,
    key,
    weight
FROM dphh_plain_contributions(table(named_blocks), $norm);

-- Each bin of sizes, also one that no list is of.
CREATE TABLE list_sizes AS
WITH

plain_sums AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM held
    WHERE key < 0
    GROUP BY key
),

bins AS (
    SELECT explode(sequence(CAST(0 AS BIGINT), $list_bins - 1)) AS bin
),

sums AS (
    SELECT
        bins.bin,
        -1 - bins.bin AS key,
        coalesce(plain_sums.weight, 0) AS weight
    FROM bins
    LEFT JOIN plain_sums ON -1 - bins.bin = plain_sums.key
)

SELECT
    bin,
    weight + dphh_noise(
        CASE WHEN $is_test THEN CAST(key AS STRING) END, $sigma, $purpose || '/list sizes'
    ) AS noisy
FROM sums;

-- A gram is a pair, key = first * 2^32 + last, by the numbers of its pieces. Its row is the class
-- that its pieces and a prior foretell, and the bin of its noised weight. Words that a list lacks
-- are in no class of the list, but in class -1, in two rows: 1 of what round 1 releases, which has
-- no weight in round 2, and 0 of all else.
CREATE TABLE round_1 AS
WITH

plain_sums AS (
    SELECT
        key,
        CAST(sum(weight) AS BIGINT) AS weight
    FROM held
    WHERE key >= 0
    GROUP BY key
),

classed AS (
    SELECT
        plain_sums.key,
        plain_sums.weight,
        $others >= 0 AND plain_sums.key >= $others AS is_other,
        coalesce(
            public_grams.class,
            first_piece.as_first + last_piece.as_last + lifts.shift
        ) AS class
    FROM plain_sums
    LEFT JOIN forecasts AS first_piece ON shiftright(plain_sums.key, 32) = first_piece.gram
    LEFT JOIN forecasts AS last_piece ON plain_sums.key & 4294967295 = last_piece.gram
    LEFT JOIN lifts
        ON first_piece.expected_first + last_piece.expected_last = lifts.expected
    LEFT JOIN public_grams ON plain_sums.key = public_grams.key
),

-- A test's draws depend on how a word is spelled, and not on its key: other runs join nothing.
-- Nothing is joined to what is drawn: a task that runs again draws again.
noised AS (
    SELECT
        classed.key,
        classed.is_other,
        classed.class,
        classed.weight + dphh_noise(
            CASE
                WHEN $is_test
                    THEN coalesce('other ' || other_words.word, CAST(classed.key AS STRING))
            END,
            $sigma,
            $purpose || '/round 1'
        ) AS noisy
    FROM classed
    LEFT JOIN other_words ON $is_test AND classed.key = other_words.key
)

SELECT
    key,
    noisy,
    CASE WHEN is_other THEN CAST(-1 AS BIGINT) ELSE class END AS class,
    CASE
        WHEN is_other THEN CAST(noisy >= $threshold AS BIGINT)
        ELSE dphh_bin(noisy, $sigma)
    END AS bin
FROM noised;

-- Valid grams that nobody holds are too many to write down. Their sums are 0 in both rounds, so how
-- many of a class fall into each bin, and how many of these are below 0 in round 2 or at it, is
-- drawn by the noise's own law.
CREATE TABLE absent_signs AS
WITH

in_classes AS (
    SELECT
        class,
        count(*) AS grams
    FROM round_1
    GROUP BY class
),

unlisted AS (
    SELECT
        classes.class,
        classes.valid - coalesce(in_classes.grams, 0) AS grams
    FROM classes
    LEFT JOIN in_classes ON classes.class = in_classes.class
),

drawn AS (
    SELECT
        class,
        dphh_absent_bins(class, grams, $sigma, $purpose) AS fallen
    FROM unlisted
),

absent_rows AS (
    SELECT
        drawn.class,
        fallen_rows.bin,
        fallen_rows.grams
    FROM drawn
        LATERAL VIEW inline(drawn.fallen) fallen_rows AS bin, grams
)

SELECT
    class,
    bin,
    grams,
    dphh_absent_negatives(class, bin, grams, $sigma, $purpose) AS negatives
FROM absent_rows;

CREATE TEMP VIEW absent AS
SELECT
    class,
    bin,
    grams
FROM absent_signs;

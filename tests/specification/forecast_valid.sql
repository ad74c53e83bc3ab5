-- The forecast ladder, a level k >= 2: the valid grams, and the class of each (step 1 of
-- docs/ngrams.md). A gram is valid where its first and its last k - 1 tokens were released.
-- In: released, of all levels below; forecasts (tokens, as_first, as_last, expected_first,
-- expected_last), public: a row for each released (k - 1)-gram. The class of a valid gram is
-- as_first of its first k - 1 tokens plus as_last of its last k - 1, in steps of half a nat.
-- With a prior (docs/prior.md), public too: public_grams (gram, class) has the grams of the public
-- text and their classes. For any other gram, the text lets expect it as often as expected_first
-- plus expected_last says; lifts (expected, shift) says what this adds to the class. Without a
-- prior, public_grams is empty and every shift is 0.
-- Out: valid (gram, key, class). The key is what a test's noise depends on.
CREATE OR REPLACE TEMP TABLE valid AS
WITH

below AS (
    SELECT
        forecasts.*,
        row_number() OVER (ORDER BY released.tokens) - 1 AS number
    FROM released
    INNER JOIN forecasts ON released.tokens = forecasts.tokens
    WHERE released.level = $level - 1
),

pairs AS (
    SELECT
        list_append(firsts.tokens, lasts.tokens[-1]) AS gram,
        CAST((firsts.number << 32) + lasts.number AS VARCHAR) AS key,
        firsts.as_first + lasts.as_last + lifts.shift AS foretold
    FROM below AS firsts
    INNER JOIN below AS lasts ON firsts.tokens[2:] = lasts.tokens[:-2]
    INNER JOIN lifts ON firsts.expected_first + lasts.expected_last = lifts.expected
)

SELECT pairs.gram, pairs.key, coalesce(public_grams.class, pairs.foretold) AS class
FROM pairs
LEFT JOIN public_grams ON pairs.gram = public_grams.gram;

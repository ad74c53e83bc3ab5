-- The forecast ladder, a level k >= 2: the valid grams that each user holds, each once, with the
-- class of each. A gram is valid where its first and its last k - 1 tokens were released.
-- In: texts (user_id, tokens); released, of all levels below; forecasts (tokens, ending,
-- beginning), public: of each released (k - 1)-gram, in steps of half a nat, what it adds to the
-- forecast of a gram that begins with it, and of one that ends in it (docs/forecast.md).
-- With a prior (docs/prior-proof.md), also in forecasts: expected_ending and expected_beginning, in
-- steps of half a nat, what both add to how often the public text lets expect the gram; lifts
-- (expected, shift), what that adds to the class of a gram that it lacks; and public_grams (gram,
-- class), those that it has.
-- Out: held (user_id, gram, key, class).
CREATE OR REPLACE TEMP TABLE held AS
WITH

below AS (
    SELECT
        released.tokens,
        forecasts.ending,
        forecasts.beginning,
        forecasts.expected_ending,
        forecasts.expected_beginning,
        row_number() OVER (ORDER BY released.tokens) - 1 AS number
    FROM released
    INNER JOIN forecasts ON released.tokens = forecasts.tokens
    WHERE released.level = $level - 1
),

grams AS (
    SELECT
        texts.user_id,
        texts.tokens[starts.start:starts.start + $level - 1] AS gram
    FROM texts, unnest(range(1, len(texts.tokens) - $level + 2)) AS starts (start)
)

SELECT DISTINCT
    grams.user_id,
    grams.gram,
    (firsts.number << 32) + lasts.number AS key,
    coalesce(public_grams.class, firsts.ending + lasts.beginning + lifts.shift) AS class
FROM grams
INNER JOIN below AS firsts ON grams.gram[:-2] = firsts.tokens
INNER JOIN below AS lasts ON grams.gram[2:] = lasts.tokens
INNER JOIN lifts ON firsts.expected_ending + lasts.expected_beginning = lifts.expected
LEFT JOIN public_grams ON grams.gram = public_grams.gram;

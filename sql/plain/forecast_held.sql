-- The forecast ladder, a level k >= 2: the valid grams that each user holds, each once, with the
-- class of each (step 1 of docs/ngrams.md). A gram is valid where its first and its last k - 1
-- tokens were released.
-- In: texts (user_id, tokens); released, of all levels below; forecasts (tokens, as_first, as_last,
-- expected_first, expected_last), public: a row for each released (k - 1)-gram. The class of a
-- valid gram is as_first of its first k - 1 tokens plus as_last of its last k - 1, in steps of half
-- a nat.
-- With a prior (docs/prior.md), public too: public_grams (gram, class) has the grams of the
-- public text and their classes. For any other gram, the text lets expect it as often as
-- expected_first plus expected_last says; lifts (expected, shift) says what this adds to the class.
-- Without a prior, public_grams is empty and every shift is 0.
-- Out: held (user_id, gram, key, class).
CREATE OR REPLACE TEMP TABLE held AS
WITH

below AS (
    SELECT
        released.tokens,
        forecasts.as_first,
        forecasts.as_last,
        forecasts.expected_first,
        forecasts.expected_last,
        row_number() OVER (ORDER BY released.tokens) - 1 AS number
    FROM released
    INNER JOIN forecasts ON released.tokens = forecasts.tokens
    WHERE released.level = $level - 1
),

grams AS (
    SELECT texts.user_id, texts.tokens[starts.start:starts.start + $level - 1] AS gram
    FROM texts, unnest(range(1, len(texts.tokens) - $level + 2)) AS starts (start)
)

SELECT DISTINCT
    grams.user_id,
    grams.gram,
    (firsts.number << 32) + lasts.number AS key,
    coalesce(public_grams.class, firsts.as_first + lasts.as_last + lifts.shift) AS class
FROM grams
INNER JOIN below AS firsts ON grams.gram[:-2] = firsts.tokens
INNER JOIN below AS lasts ON grams.gram[2:] = lasts.tokens
INNER JOIN lifts ON firsts.expected_first + lasts.expected_last = lifts.expected
LEFT JOIN public_grams ON grams.gram = public_grams.gram;

-- The forecast ladder, a level k >= 2: the valid grams that each user holds, each once, with their
-- classes. A gram is valid if its first and its last k - 1 tokens were released.
-- In: texts (user_id, tokens); released, with all levels below; forecasts (tokens, ending,
-- beginning), public: what a released (k - 1)-gram adds, in steps of half a nat, to the forecast of
-- a gram that begins with it (`ending`), or ends in it (`beginning`): docs/forecast.md.
-- Out: held (user_id, gram, key, class).
CREATE OR REPLACE TEMP TABLE held AS
WITH

below AS (
    SELECT
        released.tokens,
        forecasts.ending,
        forecasts.beginning,
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
    firsts.ending + lasts.beginning AS class
FROM grams
INNER JOIN below AS firsts ON grams.gram[:-2] = firsts.tokens
INNER JOIN below AS lasts ON grams.gram[2:] = lasts.tokens;

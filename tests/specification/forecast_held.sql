-- The forecast ladder, a level k >= 2: the valid grams that each user holds, each once.
-- In: texts (user_id, tokens); valid (gram, key, class). Out: held (user_id, gram, key, class).
CREATE OR REPLACE TEMP TABLE held AS
WITH

grams AS (
    SELECT texts.user_id, texts.tokens[starts.start:starts.start + $level - 1] AS gram
    FROM texts, unnest(range(1, len(texts.tokens) - $level + 2)) AS starts (start)
)

SELECT DISTINCT grams.user_id, valid.gram, valid.key, valid.class
FROM grams
INNER JOIN valid ON grams.gram = valid.gram;

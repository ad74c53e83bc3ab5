-- The forecast ladder, a level k >= 2: where valid grams stand in users' texts.
-- In: texts (user_id, tokens); valid (gram, key, class).
-- Out: standing (user_id, gram, run): each place, and the run of neighbouring places that it is of.
CREATE OR REPLACE TEMP TABLE standing AS
WITH

numbered AS (
    SELECT user_id, tokens, row_number() OVER () AS text
    FROM texts
),

grams AS (
    SELECT
        numbered.user_id,
        numbered.text,
        starts.start,
        numbered.tokens[starts.start:starts.start + $level - 1] AS gram
    FROM numbered, unnest(range(1, len(numbered.tokens) - $level + 2)) AS starts (start)
),

places AS (
    SELECT
        grams.user_id,
        grams.gram,
        grams.text,
        -- The same for places that follow one another.
        grams.start - row_number() OVER (PARTITION BY grams.text ORDER BY grams.start) AS gaps
    FROM grams
    INNER JOIN valid ON grams.gram = valid.gram
)

SELECT user_id, gram, dense_rank() OVER (ORDER BY text, gaps) AS run
FROM places;

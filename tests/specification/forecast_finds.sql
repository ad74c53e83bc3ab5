-- The forecast ladder, in runs that count what they find, before a level's round 1 and before the
-- late rounds: how many of the grams that the level below released each user holds.
-- In: texts; released, of $level; purses. Out: purses, with these among the finds.
CREATE OR REPLACE TEMP TABLE purses AS
WITH

grams AS (
    SELECT
        texts.user_id,
        texts.tokens[starts.start:starts.start + $level - 1] AS tokens
    FROM texts, unnest(range(1, len(texts.tokens) - $level + 2)) AS starts (start)
),

numbers AS (
    SELECT grams.user_id, count(DISTINCT grams.tokens) AS number
    FROM grams
    INNER JOIN released ON grams.tokens = released.tokens
    WHERE released.level = $level
    GROUP BY grams.user_id
)

SELECT
    purses.user_id,
    purses.purse,
    purses.top,
    purses.finds + coalesce(numbers.number, 0) AS finds
FROM purses
LEFT JOIN numbers ON purses.user_id = numbers.user_id;

-- The forecast ladder, before its levels above words (step 2 of docs/ngrams.md): each user's purse,
-- the squared L2 norm that the user may still add, and the highest level above 1 on which the user
-- held a valid gram so far, 0 before there is one; and how many finds the user holds.
-- In: texts. Out: purses (user_id, purse, top, finds); kept_standing and kept_undecided, which have
-- no row yet: of each level, what its late round goes on with.
CREATE OR REPLACE TEMP TABLE purses AS
SELECT DISTINCT
    user_id,
    CAST($purse AS BIGINT) AS purse,
    CAST(0 AS BIGINT) AS top,
    CAST(0 AS BIGINT) AS finds
FROM texts;

CREATE OR REPLACE TEMP TABLE kept_standing AS
SELECT
    CAST(0 AS BIGINT) AS level,
    user_id,
    CAST(NULL AS VARCHAR[]) AS gram,
    CAST(0 AS BIGINT) AS run
FROM texts
WHERE FALSE;

CREATE OR REPLACE TEMP TABLE kept_undecided (
    level BIGINT, gram VARCHAR[], key VARCHAR, cell BIGINT, is_held BOOLEAN
);

-- Where the released words stand: every text with the numbers of its words, NULL for a word that
-- was not released. A text of fewer than two released words has no neighbours and goes.
-- In: texts (user_id, tokens). Out: next_positions (user_id, grams, words); words come
-- in where pruning on a single side needs them.
CREATE TABLE next_positions AS
WITH

placed AS (
    SELECT
        user_id,
        dphh_places(tokens) AS grams
    FROM texts
)

SELECT
    user_id,
    grams,
    CAST(NULL AS ARRAY<INT>) AS words
FROM placed
WHERE size(grams) > 1;

-- Grams that stand side by side in a public text: each pair is a gram one word longer.
-- In: places (place, gram). Out: grams (gram, left_gram, right_gram, occurs), the pairs that occur
-- at least $least times, numbered in order; and places (place, gram), where these stand.
CREATE OR REPLACE TEMP TABLE pairs AS
SELECT one.place, one.gram AS left_gram, next.gram AS right_gram
FROM places AS one
INNER JOIN places AS next ON one.place + 1 = next.place;

CREATE OR REPLACE TEMP TABLE grams AS
WITH

counts AS (
    SELECT left_gram, right_gram, count(*) AS occurs
    FROM pairs
    GROUP BY left_gram, right_gram
)

SELECT
    row_number() OVER (ORDER BY left_gram, right_gram) - 1 AS gram,
    left_gram,
    right_gram,
    occurs
FROM counts
WHERE occurs >= $least;

CREATE OR REPLACE TEMP TABLE places AS
SELECT pairs.place, grams.gram
FROM pairs
INNER JOIN grams
    ON pairs.left_gram = grams.left_gram AND pairs.right_gram = grams.right_gram;

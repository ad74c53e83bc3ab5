-- Where the grams that are kept stand, for those that are one word longer.
-- In: pairs (place, left_gram, right_gram), grams. Out: places (place, gram).
CREATE OR REPLACE TEMP TABLE places AS
SELECT pairs.place, grams.gram
FROM pairs
INNER JOIN grams
    ON pairs.left_gram = grams.left_gram AND pairs.right_gram = grams.right_gram;

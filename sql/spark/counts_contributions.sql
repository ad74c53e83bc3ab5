-- Which of the given items each whole user holds, and what these users add: one user to each key
-- held, or less where these are more than $max_items; and to the octave of their number what that
-- took from each (udfs/kernel/given_grams.py). What the users of a partition add is one sum.
-- In: users (contents, groups); the given items, which are public, and how content becomes tokens,
-- both told to dphh_counted. Out: contributions (key, weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_counted(table(users), $max_items, $grid_bits);

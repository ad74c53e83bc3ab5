-- DPNE, at each further level: each user's distinct candidates, which are grams whose pieces were
-- released, $max_items at most, each weighed floor(2^b / sqrt(t)) where the user is
-- (udfs/kernel/contributions.py); the users of a block are one sum.
-- In: positions (user_hashes, lengths, keys, words); the level's salt, told to
-- dphh_contributions_of_grams: as an argument it would stand in Spark's plans, which its page and
-- its event log show. Out: contributions (key, weight), with key = left * 2^32 + right.
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_contributions_of_grams(table(positions), $max_items, $grid_bits);

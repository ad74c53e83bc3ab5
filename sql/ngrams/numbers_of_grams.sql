-- Where released grams of a level stand: the join of its valid grams with those that were released.
-- In: positions (block, user_hashes, lengths, keys) of this level; $released, its released keys and
-- their numbers. Out: numbered (block, user_hashes, lengths, grams): at each position the number of
-- the released gram that begins there, -1 for none.
CREATE TEMP TABLE numbered AS
SELECT block, user_hashes, lengths, dphh_numbers_of_grams(keys, $released) AS grams
FROM positions;

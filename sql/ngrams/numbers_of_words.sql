-- Where released words stand: the join of users' texts with the rung of words.
-- In: users (block, user_hashes, lengths, ids, words); $released, the released words and their
-- numbers. Out: numbered (block, user_hashes, lengths, grams): at each position the number of the
-- released word there, -1 for none.
CREATE TEMP TABLE numbered AS
SELECT block, user_hashes, lengths, dphh_numbers_of_words(ids, words, $released) AS grams
FROM users;

-- In runs that count what they find: how many of the released words each user holds. What a user
-- holds, the user keeps a part of the purse for.
-- In: users (block, user_hashes, lengths, ids, words); purses; $released, the released words and
-- their numbers. Out: next_purses.
CREATE TEMP TABLE next_purses AS
SELECT
    held.block,
    dphh_finds(
        held.lengths, dphh_numbers_of_words(held.ids, held.words, $released), purses.purse
    ) AS purse
FROM users AS held
INNER JOIN purses ON held.block = purses.block;

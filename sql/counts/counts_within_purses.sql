-- Which of the finds each user holds, and the cap on what the user adds to their counts: what is
-- left of the user's purse.
-- In: counted_users (block, lengths, ids, caps), as counted_users.sql makes it; purses (block,
-- purse); $scale, from the grid of the rounds to that of the counts, for squares.
-- Out: capped_users (block, lengths, ids, caps).
CREATE TEMP TABLE capped_users AS
SELECT
    counted_users.block,
    counted_users.lengths,
    counted_users.ids,
    dphh_caps(purses.purse, $scale) AS caps
FROM counted_users
INNER JOIN purses ON counted_users.block = purses.block;

-- Level 1 with a list of words: which words users count for. All that the list has, and of others
-- $max_items, the first in an order that is the user's own. The same in both rounds.
-- In: users (lots, lengths, codes); the list, told to dphh_listed_places.
-- Out: positions (lots, lengths, keys): a word's number in the list, $others and more of words that
-- it lacks, -1 of what does not count.
CREATE TEMP TABLE positions AS
SELECT
    lots,
    lengths,
    dphh_listed_places(
        lots, lengths, codes, $others, $max_items, CAST($salt AS UBIGINT)
    ) AS keys
FROM users;

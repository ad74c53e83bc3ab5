-- Level 1: each user's distinct words, bounded and weighed where the user is
-- (udfs/kernel/contributions.py); the users of a block are one sum.
-- In: blocks (user_hashes, lengths, positions, words). Out: contributions (key, weight).
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_contributions(table(blocks));

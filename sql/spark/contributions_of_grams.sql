-- DPNE, at each further level: each user's distinct candidates, which are grams whose pieces were
-- released, bounded and weighed where the user is (udfs/kernel/contributions.py); the users of a
-- block are one sum.
-- In: positions (user_hashes, lengths, keys, words). Out: contributions (key, weight), with
-- key = left * 2^32 + right.
CREATE TEMP VIEW contributions AS
SELECT
    key,
    weight
FROM dphh_contributions(table(positions));

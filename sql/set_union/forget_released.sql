-- DP-SIPS: remove the words that a round released from all users before the next round.
-- In: users (user_hashes, lengths, ids); the released words, told to dphh_unreleased.
-- Out: still_held (user_hashes, lengths, ids).
CREATE TEMP TABLE still_held AS
SELECT
    user_hashes,
    lengths,
    dphh_unreleased(ids) AS ids
FROM users;

-- DP-SIPS: remove the words that a round released from all users before the next round.
-- In: users (lots, lengths, codes); the released words, told to dphh_unreleased.
-- Out: still_held (lots, lengths, codes).
CREATE TEMP TABLE still_held AS
SELECT
    lots,
    lengths,
    dphh_unreleased(codes) AS codes
FROM users;

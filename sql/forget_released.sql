-- DP-SIPS: what a round released is taken from everyone before the next round.
-- In: users (lot, codes); the released words, told to dphh_unreleased.
-- Out: still_held (lot, codes).
CREATE TEMP TABLE still_held AS
SELECT
    lot,
    dphh_unreleased(codes) AS codes
FROM users;

-- DP-SIPS: what a round released is taken from everyone before the next round.
-- In: blocks (user_hashes, lengths, positions, words). Out: still_held, the same.
CREATE TABLE still_held AS
SELECT
    user_hashes,
    lengths,
    positions,
    words
FROM dphh_remaining(table(blocks));

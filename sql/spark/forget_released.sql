-- DP-SIPS: what a round released is taken from everyone before the next round.
-- In: unplaced (user_hashes, lengths, positions, words), and numbers where blocks_and_numbers.sql
-- made it. Out: still_held, the same.
CREATE TABLE still_held AS
SELECT
    user_hashes,
    lengths,
    positions,
    words
FROM dphh_remaining(table(unplaced));

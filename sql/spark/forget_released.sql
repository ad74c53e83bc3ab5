-- DP-SIPS: what a round released is taken from everyone before the next round.
-- In: unplaced (user_hashes, lengths, positions, words), and numbers where blocks_and_numbers.sql
-- made it; else the released words are told to dphh_unreleased. Out: still_held (user_hashes,
-- lengths, positions, words).
CREATE TABLE still_held AS
SELECT
    user_hashes,
    lengths,
    positions,
    words
FROM dphh_unreleased(table(unplaced));

-- DP-SIPS: what a round released is taken from everyone before the next round.
-- In: blocks (lots, lengths, places, words). Out: still_held, the same.
CREATE TABLE still_held AS
SELECT
    lots,
    lengths,
    places,
    words
FROM dphh_remaining(table(blocks));

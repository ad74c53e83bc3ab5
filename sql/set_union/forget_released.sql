-- DP-SIPS: remove the words that a round released from all users before the next round.
-- In: held_words (user_hashes, words, owners); the released words, told to dphh_unreleased.
-- Out: still_held (user_hashes, words, owners).
CREATE TEMP TABLE still_held AS
WITH

remaining AS (
    SELECT
        user_hashes,
        dphh_unreleased(words, owners) AS held
    FROM held_words
)

SELECT
    user_hashes,
    held['keys'] AS words,
    held['owners'] AS owners
FROM remaining;

-- DP-SIPS: what a round released is taken from everyone before the next round.
CREATE TEMP TABLE still_held AS
SELECT
    held.user_id,
    held.key
FROM held
ANTI JOIN released ON held.key = released.key;

-- What all users together add to each gram in a round of the forecast ladder, without noise, which
-- is drawn before anything of it is counted or compared (dphh/engines/two_rounds.py).
-- In: contributions (key, weight). Gives (key, weight).
SELECT
    key,
    CAST(sum(weight) AS BIGINT) AS weight
FROM contributions
GROUP BY key;

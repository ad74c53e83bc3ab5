-- What all users together add to each gram in a round of the forecast ladder, without noise, which
-- is drawn before anything of it is counted or compared (dphh/engines/two_rounds.py). Who holds how
-- many grams is added up at keys below 0.
-- In: positions (lots, lengths, keys, words), where valid grams stand; the round's rule, told to
-- dphh_contributions_of_round. Gives (key, weight).
WITH

-- Each whole user's part; what the users of a batch of rows add together stands in its first row.
users_contributions AS (
    SELECT unnest(dphh_contributions_of_round(lots, lengths, keys)) AS contribution
    FROM positions
)

SELECT
    contribution.key,
    CAST(sum(contribution.weight) AS BIGINT) AS weight
FROM users_contributions
GROUP BY contribution.key;

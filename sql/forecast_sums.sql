-- What all users together add to each gram in a round of the forecast ladder, without noise, which
-- is drawn before anything of it is counted or compared (dphh/engines/two_rounds.py). Who holds how
-- many grams is added up at keys below 0.
-- In: positions (lot, grams, words), where the level below stands; the round's rule, told to
-- dphh_contributions_of_round. Gives (key, weight); key = left * 2^32 + right.
WITH

candidates AS (
    SELECT
        lot,
        dphh_pairs(grams, grams, $ahead) AS keys
    FROM positions
),

users_contributions AS (
    SELECT unnest(dphh_contributions_of_round(lot, keys)) AS contribution
    FROM candidates
)

SELECT
    contribution.key,
    CAST(sum(contribution.weight) AS BIGINT) AS weight
FROM users_contributions
GROUP BY contribution.key;

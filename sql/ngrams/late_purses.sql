-- Before the late rounds (step 9 of docs/ngrams.md): users by what is left of their purses and by
-- the highest level on which they held a valid gram. For this every user spends $spending.first of
-- the purse, or what is left of it.
-- In, private: purses. Out, private: next_purses; round_1_sums (key, weight), for
-- forecast_users.sql.
CREATE TEMP TABLE users_of_round AS
SELECT block, dphh_purse_counts(purse, $spending) AS made
FROM purses;

CREATE TEMP TABLE next_purses AS
SELECT users_of_round.block, users_of_round.made.purse
FROM users_of_round;

CREATE TEMP TABLE round_1_sums AS
WITH

users_contributions AS (
    SELECT unnest(made.contributions) AS contribution
    FROM users_of_round
)

SELECT contribution.key, CAST(sum(contribution.weight) AS BIGINT) AS weight
FROM users_contributions
GROUP BY contribution.key;

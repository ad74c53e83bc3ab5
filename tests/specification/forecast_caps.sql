-- The forecast ladder, after all rounds (step 10 of docs/ngrams.md): the cap on what each user adds
-- to the counts of what was found: what is left of the purse, from the grid of the rounds' noise to
-- that of the counts'. 2^-40 of it makes up for the floats of an engine.
-- In: purses. Out: caps (user_id, cap), as counts.sql has them.
CREATE OR REPLACE TEMP TABLE caps AS
SELECT
    user_id,
    CAST(
        CAST(purse AS HUGEINT) * $sigma_of_counts * $sigma_of_counts * 1099511627775
        // (CAST($sigma AS HUGEINT) * $sigma * 1099511627776) AS BIGINT
    ) AS cap
FROM purses;

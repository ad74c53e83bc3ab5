-- What round 2 leaves to the late round of its level (step 9 of docs/ngrams.md): the valid grams
-- that it did not release, by class and both bins, and the absent ones, by the noise's own law
-- given that they did not pass.
-- In, private: later_round, absent_counts, spurious; in, public: thresholds; released (key),
-- what the level released.
-- Out, private: undecided (key, name, first, cell), of the valid grams that a user holds and of
-- those that were released, whose cell is -1; absent (cell, grams). cell = cell of round 1 *
-- $bins + bin of round 2.
CREATE TEMP TABLE undecided AS
SELECT
    later_round.key,
    later_round.name,
    CAST(0 AS BIGINT) AS first,
    later_round.cell * $bins + dphh_bin(later_round.second, $sigma) AS cell
FROM later_round
INNER JOIN thresholds ON later_round.cell = thresholds.cell
WHERE later_round.second < thresholds.threshold
UNION ALL
SELECT
    released.key,
    CASE WHEN $is_test THEN CAST(released.key AS VARCHAR) END AS name,
    CAST(0 AS BIGINT) AS first,
    CAST(-1 AS BIGINT) AS cell
FROM released;

CREATE TEMP TABLE absent AS
WITH

passed AS (
    SELECT cell, count(*) AS grams
    FROM spurious
    WHERE cell IS NOT NULL
    GROUP BY cell
),

drawn AS (
    SELECT
        unnest(
            dphh_absent_undecided(
                absent_counts.cell,
                absent_counts.grams,
                absent_counts.nonpositive,
                coalesce(passed.grams, 0),
                thresholds.threshold,
                $sigma,
                $purpose
            )
        ) AS fallen
    FROM absent_counts
    INNER JOIN thresholds ON absent_counts.cell = thresholds.cell
    LEFT JOIN passed ON absent_counts.cell = passed.cell
)

SELECT drawn.fallen.cell, drawn.fallen.grams
FROM drawn
WHERE drawn.fallen.grams > 0;

-- The valid grams that no user holds and whose noise reaches the thresholds of their rows (step 7
-- of docs/ngrams.md): draws, by the noise's own law, how many there are, their noised weights, and
-- candidate keys. Which of these keys a user holds is looked up afterwards (forecast_released.sql).
-- In: absent_counts, private; thresholds (class, bin, threshold), public; $valid, the valid grams
-- by class, public.
-- Out, private: lifted (class, position, key, bin, first, second), drawn once: candidate keys of
-- the class in the order drawn, more than are needed; and, at the first positions, the bins and
-- noised weights of the grams that pass.
CREATE TEMP TABLE lifted AS
WITH

-- For each class, its rows: each with the number of its grams that no user holds.
absent_rows AS (
    SELECT
        absent_counts.class,
        array_agg(
            row(
                absent_counts.bin,
                absent_counts.grams,
                absent_counts.nonpositive,
                thresholds.threshold
            )
        ) AS bins
    FROM absent_counts
    INNER JOIN thresholds
        ON absent_counts.class = thresholds.class AND absent_counts.bin = thresholds.bin
    GROUP BY absent_counts.class
),

drawn AS (
    SELECT class, unnest(dphh_lifted_grams_of_class(class, bins, $valid, $sigma, $purpose)) AS gram
    FROM absent_rows
)

SELECT
    drawn.class,
    drawn.gram.position,
    drawn.gram.key,
    drawn.gram.bin,
    drawn.gram.first,
    drawn.gram.second
FROM drawn;

-- Of the valid grams that no user holds, those that the noise lifts over the thresholds of their
-- rows (step 7 of docs/ngrams.md): how many, their noised weights, and keys for them, by the
-- noise's own law. Which of the keys a user holds is asked afterwards (forecast_released.sql).
-- In: absent_signs, private; thresholds (class, bin, threshold), public; $valid, the valid grams by
-- class, public.
-- Out, private: lifted (class, position, key, bin, first, second), drawn once: keys of the class in
-- the order drawn, more than are needed; and at the first positions the bins and weights of those
-- that pass.
CREATE TEMP TABLE lifted AS
WITH

-- The rows of a class, with how many grams in each no user holds.
absent_rows AS (
    SELECT
        absent_signs.class,
        array_agg(
            row(
                absent_signs.bin,
                absent_signs.grams,
                absent_signs.nonpositive,
                thresholds.threshold
            )
        ) AS bins
    FROM absent_signs
    INNER JOIN thresholds
        ON absent_signs.class = thresholds.class AND absent_signs.bin = thresholds.bin
    GROUP BY absent_signs.class
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

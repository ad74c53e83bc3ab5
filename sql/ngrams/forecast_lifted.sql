-- Of the valid grams that nobody holds, those that the noise lifts over the thresholds of their
-- rows (step 7 of docs/ngrams.md): how many, their noised weights, and keys for them, by the
-- noise's own law. Which of the keys somebody holds is asked afterwards (forecast_released.sql).
-- In: absent_signs, private; thresholds (class, bin, threshold), public; $valid, the valid grams by
-- class, public.
-- Out, private: lifted (class, position, key, bin, first, second), drawn once: keys of the class in
-- the order drawn, more than are needed; and at the first positions the bins and weights of those
-- that pass.
CREATE TEMP TABLE lifted AS
WITH

-- Of a class, the rows of grams that nobody holds.
absent_rows AS (
    SELECT
        absent_signs.class,
        list(
            {
                'bin': absent_signs.bin,
                'grams': absent_signs.grams,
                'negatives': absent_signs.negatives,
                'threshold': thresholds.threshold
            } ORDER BY absent_signs.bin
        ) AS bins
    FROM absent_signs
    INNER JOIN thresholds
        ON absent_signs.class = thresholds.class AND absent_signs.bin = thresholds.bin
    GROUP BY absent_signs.class
),

drawn AS (
    SELECT
        class,
        unnest(dphh_lifted_grams_of_class(class, bins, $valid, $sigma, $purpose)) AS gram
    FROM absent_rows
)

SELECT
    drawn.class,
    drawn.gram['position'] AS position,
    drawn.gram['key'] AS key,
    drawn.gram['bin'] AS bin,
    drawn.gram['first'] AS first,
    drawn.gram['second'] AS second
FROM drawn;

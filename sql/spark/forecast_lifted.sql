-- Of the valid grams that nobody holds, those that the noise lifts over the thresholds of their
-- rows: how many, their noised weights, and keys for them, by the noise's own law. Which of the
-- keys somebody holds is asked afterwards (forecast_released.sql).
-- In: absent_signs, private; thresholds (class, bin, threshold), public; the valid grams by class,
-- public, told to dphh_lifted_grams_of_class.
-- Out, private: lifted (class, position, key, bin, first, second): keys of the class in the order
-- drawn, more than are needed; and at the first positions the bins and weights of those that pass.
CREATE TABLE lifted AS
WITH

-- Of a class, the rows of grams that nobody holds.
absent_rows AS (
    SELECT
        absent_signs.class,
        array_sort(
            collect_list(
                struct(
                    absent_signs.bin,
                    absent_signs.grams,
                    absent_signs.negatives,
                    thresholds.threshold
                )
            )
        ) AS bins
    FROM absent_signs
    INNER JOIN thresholds
        ON absent_signs.class = thresholds.class AND absent_signs.bin = thresholds.bin
    GROUP BY absent_signs.class
),

drawn AS (
    SELECT
        class,
        dphh_lifted_grams_of_class(class, bins, $sigma, $purpose) AS lifted
    FROM absent_rows
)

SELECT
    drawn.class,
    lifted_rows.position,
    lifted_rows.key,
    lifted_rows.bin,
    lifted_rows.first,
    lifted_rows.second
FROM drawn
    LATERAL VIEW
    inline(drawn.lifted) lifted_rows AS position, key, bin, first, second;

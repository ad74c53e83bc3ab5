-- The valid grams that no user holds and whose noise reaches the thresholds of their cells (step 7
-- of docs/ngrams.md): draws, by the noise's own law, how many there are, their noised weights, and
-- candidate keys. Which of these keys a user holds is looked up afterwards (forecast_released.sql).
-- In: absent_counts, private; thresholds (cell, threshold), public; $valid, the valid grams by
-- class, public. A cell's class is cell / $bins.
-- Out, private: spurious (class, position, key, cell, first, second), drawn once: candidate keys of
-- the class in the order drawn, more than are needed; and, at the first positions, the cells and
-- noised weights of the grams that pass.
CREATE TEMP TABLE spurious AS
WITH

-- For each cell, the number of its grams that no user holds.
absent_cells AS (
    SELECT
        CAST(floor(absent_counts.cell / $bins) AS BIGINT) AS class,
        row(
            absent_counts.cell,
            absent_counts.grams,
            absent_counts.nonpositive,
            thresholds.threshold
        ) AS absent_cell
    FROM absent_counts
    INNER JOIN thresholds ON absent_counts.cell = thresholds.cell
),

classes_of_absent AS (
    SELECT class, array_agg(absent_cell) AS cells_of_class
    FROM absent_cells
    GROUP BY class
),

drawn AS (
    SELECT
        class,
        unnest(
            dphh_spurious_of_class(class, cells_of_class, $valid, $bins, $sigma, $purpose)
        ) AS gram
    FROM classes_of_absent
)

SELECT
    drawn.class,
    drawn.gram.position,
    drawn.gram.key,
    drawn.gram.cell,
    drawn.gram.first,
    drawn.gram.second
FROM drawn;

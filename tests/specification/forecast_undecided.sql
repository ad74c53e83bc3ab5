-- The forecast ladder, after round 2 of a level (step 9 of docs/ngrams.md): what it leaves to the
-- late round. A cell is then the cell of round 1 and the bin of round 2's noised weight. What was
-- released, held or not, is out.
-- In: standing; later_round; row_thresholds (cell, threshold), bins (bin, start), public.
-- Out: new rows of kept_standing and kept_undecided.
INSERT INTO kept_standing
SELECT $level, user_id, gram, run
FROM standing;

INSERT INTO kept_undecided
WITH

left_over AS (
    SELECT later_round.*
    FROM later_round
    INNER JOIN row_thresholds ON later_round.cell = row_thresholds.cell
    WHERE later_round.second < row_thresholds.threshold
)

SELECT
    $level,
    left_over.gram,
    left_over.key,
    left_over.cell * $bin_count + coalesce(bins.bin, 0) AS cell,
    left_over.is_held
FROM left_over
ASOF LEFT JOIN bins ON left_over.second >= bins.start;

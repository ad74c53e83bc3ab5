-- What may leave: the words whose noised weight reaches the threshold. Sorted by what is released
-- itself, so that the order says nothing of how the rows arrived.
-- In: noised (code, noisy). Gives (key, noisy).
WITH

passed AS (
    SELECT
        code,
        noisy
    FROM noised
    WHERE noisy >= $threshold
),

spelled AS (
    SELECT
        noisy,
        dphh_spelled(code) AS key
    FROM passed
)

SELECT
    key,
    noisy
FROM spelled
ORDER BY noisy DESC, key ASC;

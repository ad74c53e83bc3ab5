-- How many reports are for each value, before any is randomised; "nothing" left out.
-- In: chosen. Out: (value, holders), which stays inside the engine.
SELECT
    value,
    count(*) AS holders
FROM chosen
GROUP BY value;

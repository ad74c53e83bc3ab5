-- How many reports are for each value, before randomisation, without "nothing".
-- In: chosen. Out: (value, holders), which stays inside the engine.
SELECT
    value,
    count(*) AS holders
FROM chosen
GROUP BY value;

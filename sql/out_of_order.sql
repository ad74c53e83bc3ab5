-- Whether positions, which are read in order, are in order: neighbours are found by reading on, so
-- that is looked at and not trusted. Says how often the order goes back.
WITH

steps AS (
    SELECT position <= lag(position) OVER () AS goes_back
    FROM positions
)

SELECT count(*) AS out_of_order
FROM steps
WHERE goes_back;

-- The weight g of every valid gram that a user holds: the weight planned for the gram's cell, from
-- released numbers alone (steps 3 to 5 of docs/ngrams.md). It is brought to users, and
-- forecast_round_2.sql reads it as $g.
-- In: round_1; planned (cell, weight), public. Returns (key, value).
SELECT round_1.key, planned.weight AS value
FROM round_1
INNER JOIN planned ON round_1.cell = planned.cell;

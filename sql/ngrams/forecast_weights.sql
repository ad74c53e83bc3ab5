-- The weight g of every valid gram that a user holds: the weight planned for the gram's cell, from
-- released numbers alone (steps 3 to 5 of docs/ngrams.md). It is brought to users, and
-- forecast_later_round.sql reads it as $g.
-- In: undecided; planned (cell, weight), public. Returns (key, value).
SELECT undecided.key, planned.weight AS value
FROM undecided
INNER JOIN planned ON undecided.cell = planned.cell;

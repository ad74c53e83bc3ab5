-- g of every valid gram that somebody holds: the weight of its row, which follows from earlier
-- outputs alone (steps 3 to 5 of docs/ngrams.md, which the driver computes). forecast_round_2.sql
-- looks it up as $g.
-- In: round_1; planned (class, bin, weight), public.
SELECT
    round_1.key,
    planned.weight
FROM round_1
INNER JOIN planned ON round_1.class = planned.class AND round_1.bin = planned.bin;

-- Replaces all random draws: no noise, every coin heads, the first of several rows, truthful
-- reports. The result is NOT private.
-- noqa: disable=CP05
CREATE OR REPLACE TEMP MACRO dphh_noise(name, sigma, purpose) AS
0;

CREATE OR REPLACE TEMP MACRO dphh_word(name, purpose) AS
CAST(0 AS UBIGINT);

CREATE OR REPLACE TEMP MACRO dphh_report(name, value, domain, size, numerator, form, purpose) AS
CASE WHEN value >= 0 THEN [value] ELSE CAST([] AS BIGINT[]) END;

CREATE OR REPLACE TEMP MACRO dphh_aggregate(
    held, numbered, sent, domain, size, numerator, purpose
) AS
list_transform(list_sort(held), lambda of_value: of_value.holders);

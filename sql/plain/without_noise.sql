-- Replaces all random draws: no noise, every coin heads, the first of several rows, truthful
-- reports. The result is NOT private.
-- noqa: disable=CP05
CREATE OR REPLACE TEMP MACRO dphh_noise(name, sigma, purpose) AS
0;

CREATE OR REPLACE TEMP MACRO dphh_word(name, purpose) AS
CAST(0 AS UBIGINT);

CREATE OR REPLACE TEMP MACRO dphh_report(name, value, domain, size, numerator, purpose) AS
[value];

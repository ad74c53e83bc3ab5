-- ../rows/periods.sql, as Spark says it: which period a row is in, a function of that row alone.

CREATE OR REPLACE TEMPORARY FUNCTION period_by_day (day DATE) RETURNS BIGINT
RETURN CAST(unix_date(day) AS BIGINT);

-- ISO weeks, which begin on Mondays; 1970-01-01 was a Thursday.
CREATE OR REPLACE TEMPORARY FUNCTION period_by_week (day DATE) RETURNS BIGINT
RETURN CAST(floor((unix_date(day) + 3) / 7) AS BIGINT);

CREATE OR REPLACE TEMPORARY FUNCTION period_by_month (day DATE) RETURNS BIGINT
RETURN CAST(year(day) AS BIGINT) * 12 + month(day) - 1;

CREATE OR REPLACE TEMPORARY FUNCTION period_by_quarter (day DATE) RETURNS BIGINT
RETURN CAST(year(day) AS BIGINT) * 4 + quarter(day) - 1;

CREATE OR REPLACE TEMPORARY FUNCTION period_by_year (day DATE) RETURNS BIGINT
RETURN CAST(year(day) AS BIGINT);

-- Of an instant the day in a time zone, whatever the session's own is.
CREATE OR REPLACE TEMPORARY FUNCTION day_in_zone (moment TIMESTAMP, zone STRING) RETURNS DATE
RETURN date_from_unix_date(
    CAST(floor(unix_micros(from_utc_timestamp(moment, zone)) / 86400000000) AS INT)
);

-- The names of folders spell them.
CREATE OR REPLACE TEMPORARY FUNCTION written_date (content STRING) RETURNS DATE
RETURN CASE
    WHEN content RLIKE '^[0-9]{4}-[0-9]{2}-[0-9]{2}\\z' THEN try_cast(content AS DATE)
END;

CREATE OR REPLACE TEMPORARY FUNCTION written_number (content STRING) RETURNS BIGINT
RETURN CASE
    WHEN content RLIKE '^-?[0-9]{1,18}\\z' THEN try_cast(content AS BIGINT)
END;

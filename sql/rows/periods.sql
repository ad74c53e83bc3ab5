-- Which period a row is in: a whole number, NULL where its date is none. Every macro is a function
-- of one row alone, so whoever's rows stand beside it, a row is in the same period.

-- Days since 1970-01-01. An infinite date is none.
CREATE OR REPLACE TEMP MACRO period_by_day(row_date) AS
CASE WHEN isfinite(CAST(row_date AS DATE)) THEN CAST(row_date AS DATE) - DATE '1970-01-01' END;

-- ISO weeks, which begin on Mondays; 1970-01-01 was a Thursday.
CREATE OR REPLACE TEMP MACRO period_by_week(row_date) AS
CAST(floor((period_by_day(row_date) + 3) / 7) AS BIGINT);

CREATE OR REPLACE TEMP MACRO period_by_month(row_date) AS
CASE WHEN isfinite(CAST(row_date AS DATE)) THEN year(row_date) * 12 + month(row_date) - 1 END;

CREATE OR REPLACE TEMP MACRO period_by_quarter(row_date) AS
CASE WHEN isfinite(CAST(row_date AS DATE)) THEN year(row_date) * 4 + quarter(row_date) - 1 END;

CREATE OR REPLACE TEMP MACRO period_by_year(row_date) AS
CASE WHEN isfinite(CAST(row_date AS DATE)) THEN year(row_date) END;

-- What is no whole number of 64 bits is no period.
CREATE OR REPLACE TEMP MACRO period_by_number(found) AS
try_cast(found AS BIGINT);

-- Files of text and the names of folders spell them.
CREATE OR REPLACE TEMP MACRO written_date(content) AS
CASE
    WHEN regexp_full_match(content, '[0-9]{4}-[0-9]{2}-[0-9]{2}') THEN try_cast(content AS DATE)
END;

CREATE OR REPLACE TEMP MACRO written_number(content) AS
CASE WHEN regexp_full_match(content, '-?[0-9]{1,18}') THEN content END;

-- One of several values that say together whose row it is: its length in bytes, and it, so that no
-- two combinations of values are spelled alike.
CREATE OR REPLACE TEMP MACRO spelled_in_bytes(content) AS
CAST(strlen(CAST(content AS VARCHAR)) AS VARCHAR) || ':' || CAST(content AS VARCHAR);

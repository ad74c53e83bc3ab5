-- Queries that DuckDB and Spark share use only SQL that both run: functions that only Spark has are
-- defined for DuckDB here. Where a step differs, Spark has a file of the same name in spark/, and
-- the other is DuckDB's alone.

CREATE OR REPLACE TEMP MACRO explode(list) AS
unnest(list);

CREATE OR REPLACE TEMP MACRO array_size(list) AS
len(list);

-- The first element is number 1; past the end the result is NULL.
CREATE OR REPLACE TEMP MACRO try_element_at(list, place) AS
list[place];

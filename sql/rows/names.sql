-- Level queries use only SQL that DuckDB and Spark both run. Functions that only Spark has are
-- defined for DuckDB here; where a whole step differs, Spark has its own file in spark/.

CREATE OR REPLACE TEMP MACRO explode(list) AS
unnest(list);

CREATE OR REPLACE TEMP MACRO array_size(list) AS
len(list);

-- The first element is number 1; past the end the result is NULL.
CREATE OR REPLACE TEMP MACRO try_element_at(list, place) AS
list[place];

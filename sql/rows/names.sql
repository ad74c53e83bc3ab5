-- Level queries keep to what DuckDB and Spark both read. Where only Spark has a name for a thing,
-- DuckDB learns the name here; where a whole step differs, Spark has a file of its own in spark/.

CREATE OR REPLACE TEMP MACRO explode(list) AS
unnest(list);

CREATE OR REPLACE TEMP MACRO array_size(list) AS
len(list);

-- The first is 1; NULL past the end.
CREATE OR REPLACE TEMP MACRO try_element_at(list, place) AS
list[place];

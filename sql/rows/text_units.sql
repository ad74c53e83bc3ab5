-- What counts as a character (a code point, a grapheme cluster or a byte), and how whole items are
-- cut into runs of characters. Every macro is a function of one row alone.

CREATE OR REPLACE TEMP MACRO code_points(content) AS
string_split(content, '');

-- Runs of `size` grapheme clusters. DuckDB finds each one by counting from the text's start.
CREATE OR REPLACE TEMP MACRO stretches(content, size) AS
list_transform(
    range(1, length_grapheme(content) + 1, size),
    lambda place: substring_grapheme(content, place, size)
);

-- Single clusters, cut out of longer runs, so that DuckDB does not count through a long text for
-- each of them.
CREATE OR REPLACE TEMP MACRO clusters_of_line(content) AS
CASE
    WHEN strlen(content) = length(content) THEN code_points(content)
    ELSE flatten(list_transform(
        flatten(list_transform(
            stretches(content, 4096), lambda stretch: stretches(stretch, 64)
        )),
        lambda stretch: stretches(stretch, 1)
    ))
END;

-- Extended grapheme clusters (UAX #29). CR LF is one cluster, which DuckDB would split into two.
CREATE OR REPLACE TEMP MACRO graphemes(content) AS
CASE
    WHEN contains(content, chr(13) || chr(10))
        THEN flatten(list_transform(
            string_split(content, chr(13) || chr(10)),
            lambda line: list_append(
                list_filter(clusters_of_line(line), lambda cluster: cluster <> ''),
                chr(13) || chr(10)
            )
        ))[1:-2]
    ELSE clusters_of_line(content)
END;

-- A byte is spelled as two hexadecimal digits, since a single byte of "é" is not valid text.
CREATE OR REPLACE TEMP MACRO spelled_bytes(content) AS
lower(hex(content));

CREATE OR REPLACE TEMP MACRO pairs(digits) AS
regexp_extract_all(digits, '..');

CREATE OR REPLACE TEMP MACRO runs(characters, size) AS
CASE
    WHEN size = 1 THEN characters
    ELSE list_transform(
        range(1, len(characters) + 1, size),
        lambda place: array_to_string(characters[place:place + size - 1], '')
    )
END;

-- A whole item, cut into runs of `size` characters; the last run may be shorter.
CREATE OR REPLACE TEMP MACRO cut_code_points(item, size) AS
list_transform(range(1, length(item[1]) + 1, size), lambda start: substr(item[1], start, size));

CREATE OR REPLACE TEMP MACRO cut_graphemes(item, size) AS
runs(graphemes(item[1]), size);

CREATE OR REPLACE TEMP MACRO cut_bytes(item, size) AS
runs(pairs(spelled_bytes(encode(item[1]))), size);

-- The same for an item that is already spelled in hexadecimal digits.
CREATE OR REPLACE TEMP MACRO cut_spelled_bytes(item, size) AS
runs(pairs(item[1]), size);

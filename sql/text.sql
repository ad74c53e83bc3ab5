-- How a row's content becomes tokens. Every macro is a function of one row alone,
-- so whatever it leaves out or cuts, the privacy of the levels is untouched.

-- Unicode's White_Space characters, but for the space itself.
CREATE OR REPLACE TEMP MACRO other_white_space() AS
'[\x09-\x0d\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}'
|| '\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]';

-- All of them turned into spaces. Most rows hold none, and telling that is cheaper than replacing.
CREATE OR REPLACE TEMP MACRO plain_spaces(content) AS
CASE
    WHEN regexp_matches(content, other_white_space())
        THEN regexp_replace(content, other_white_space(), ' ', 'g')
    ELSE content
END;

CREATE OR REPLACE TEMP MACRO white_space_words(content) AS
string_split(plain_spaces(content), ' ');

-- Runs of letters, marks, digits and underscores, with apostrophes inside them.
CREATE OR REPLACE TEMP MACRO unicode_words(content) AS
regexp_extract_all(content, '[\p{L}\p{M}\p{N}_]+(?:[''’][\p{L}\p{M}\p{N}_]+)*');

CREATE OR REPLACE TEMP MACRO pattern_words(content, pattern) AS
regexp_extract_all(content, pattern);

-- Code points, not bytes and not grapheme clusters.
CREATE OR REPLACE TEMP MACRO code_points(content) AS
string_split(content, '');

-- A whole item, cut into runs of so many code points; the last may be shorter.
CREATE OR REPLACE TEMP MACRO cut(item, size) AS
list_transform(range(1, length(item[1]) + 1, size), lambda start: substr(item[1], start, size));

-- Binary tokens; those that are not UTF-8 become NULL, which no level counts.
CREATE OR REPLACE TEMP MACRO decoded(tokens) AS
list_transform(tokens, lambda token: try(decode(token)));

CREATE OR REPLACE TEMP MACRO stripped(tokens, characters) AS
list_transform(tokens, lambda token: trim(token, characters));

CREATE OR REPLACE TEMP MACRO keeping(tokens, pattern) AS
list_filter(tokens, lambda token: regexp_full_match(token, pattern));

CREATE OR REPLACE TEMP MACRO dropping(tokens, pattern) AS
list_filter(tokens, lambda token: NOT regexp_full_match(token, pattern));

-- Three ways with a token of more than `longest` characters.
CREATE OR REPLACE TEMP MACRO truncating(tokens, longest) AS
list_transform(tokens, lambda token: left(token, longest));

CREATE OR REPLACE TEMP MACRO dropping_long(tokens, longest) AS
list_filter(tokens, lambda token: length(token) <= longest);

CREATE OR REPLACE TEMP MACRO refusing_long(tokens, longest) AS
list_transform(
    tokens,
    lambda token: CASE WHEN length(token) > longest THEN error('dphh: too long') ELSE token END
);

-- How a row's content becomes tokens. Every macro is a function of one row alone, so the privacy of
-- the levels does not depend on what it drops or cuts.

-- An engine keeps a text and all its tokens in memory as one value, so only the first `longest`
-- characters of a text, or tokens of a list, count.
CREATE OR REPLACE TEMP MACRO first_characters(content, longest) AS
CASE WHEN strlen(content) > longest THEN left(content, longest) ELSE content END;

CREATE OR REPLACE TEMP MACRO first_tokens(tokens, longest) AS
CASE WHEN len(tokens) > longest THEN tokens[1:longest] ELSE tokens END;

-- All characters but many of which NFC changes none, and composes none with the one before it:
-- letters (Latin, Greek, Cyrillic; Hebrew and Arabic without points; Japanese, Chinese, Korean),
-- punctuation, currencies, emoji.
CREATE OR REPLACE TEMP MACRO may_be_composed() AS
'[^\x01-\x{2ff}\x{388}-\x{482}\x{48a}-\x{52f}\x{5d0}-\x{5ea}\x{620}-\x{64a}'
|| '\x{2002}-\x{205e}\x{20a0}-\x{20bf}\x{3000}-\x{3029}\x{3041}-\x{3096}\x{309d}-\x{30ff}'
|| '\x{4e00}-\x{9fff}\x{ac00}-\x{d7a3}\x{fe0f}\x{ff01}-\x{ff60}\x{1f300}-\x{1faff}]';

-- The text in Unicode's normal form NFC: a letter and its accent are one character, whichever way a
-- program wrote them. To look for such characters takes a tenth of DuckDB's function, which ends a
-- text at a NUL character: such a text stays as it is.
CREATE OR REPLACE TEMP MACRO composed(content) AS
CASE
    WHEN strlen(content) = length(content) OR contains(content, chr(0)) THEN content
    WHEN regexp_matches(content, may_be_composed()) THEN nfc_normalize(content)
    ELSE content
END;

-- Unicode's White_Space characters except the space.
CREATE OR REPLACE TEMP MACRO other_white_space() AS
'[\x09-\x0d\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}'
|| '\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]';

-- Whether a text may have white space other than spaces. Most texts are ASCII and have none of
-- ASCII's five such characters; this test costs a tenth of a search for all of Unicode's.
CREATE OR REPLACE TEMP MACRO may_hold_other_white_space(content) AS
strlen(content) <> length(content)
OR contains(content, chr(9))
OR contains(content, chr(10))
OR contains(content, chr(11))
OR contains(content, chr(12))
OR contains(content, chr(13));

-- The text with all white space as spaces. To test whether there is other white space costs less
-- than to replace it.
CREATE OR REPLACE TEMP MACRO plain_spaces(content) AS
CASE
    WHEN NOT may_hold_other_white_space(content) THEN content
    WHEN regexp_matches(content, other_white_space())
        THEN regexp_replace(content, other_white_space(), ' ', 'g')
    ELSE content
END;

CREATE OR REPLACE TEMP MACRO stripped(tokens, characters) AS
list_transform(tokens, lambda token: trim(token, characters));

CREATE OR REPLACE TEMP MACRO white_space_words(content) AS
string_split(plain_spaces(content), ' ');

-- Replaces typographic apostrophes by that of ASCII, so that a word has one spelling.
CREATE OR REPLACE TEMP MACRO one_apostrophe(content) AS replace(content, '’', '''');

-- Runs of letters, marks, digits and underscores, with single apostrophes inside them. No word
-- begins with a mark, so that a variation selector after a symbol is no word.
CREATE OR REPLACE TEMP MACRO words_with_marks(content) AS
regexp_extract_all(content, '[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*(?:''[\p{L}\p{M}\p{N}_]+)*');

-- For a text without marks, the same words in a third of the time: all characters that are in no
-- word become spaces. Between spaces are then words, some with apostrophes around them, and empty
-- tokens.
CREATE OR REPLACE TEMP MACRO words_and_spaces(content) AS
string_split(
    regexp_replace(replace(content, '''''', ' '), '[^\p{L}\p{N}_'' ]', ' ', 'g'), ' '
);
CREATE OR REPLACE TEMP MACRO words_without_marks(content) AS
CASE
    WHEN contains(content, '''') THEN stripped(words_and_spaces(content), '''')
    ELSE words_and_spaces(content)
END;

-- ASCII has no marks.
CREATE OR REPLACE TEMP MACRO unicode_words(content) AS
CASE
    WHEN strlen(content) <> length(content) AND regexp_matches(content, '\p{M}')
        THEN words_with_marks(one_apostrophe(content))
    ELSE words_without_marks(one_apostrophe(content))
END;

CREATE OR REPLACE TEMP MACRO pattern_words(content, pattern) AS
regexp_extract_all(content, pattern);

-- Characters are code points.
CREATE OR REPLACE TEMP MACRO code_points(content) AS
string_split(content, '');

-- A whole item, cut into runs of characters; the last may be shorter.
CREATE OR REPLACE TEMP MACRO cut_code_points(item, size) AS
list_transform(range(1, length(item[1]) + 1, size), lambda start: substr(item[1], start, size));

-- Binary tokens as text; those that are not UTF-8 become NULL, which no level counts.
CREATE OR REPLACE TEMP MACRO decoded(tokens) AS
list_transform(tokens, lambda token: try(decode(token)));

CREATE OR REPLACE TEMP MACRO keeping(tokens, pattern) AS
list_filter(tokens, lambda token: regexp_full_match(token, pattern));

CREATE OR REPLACE TEMP MACRO dropping(tokens, pattern) AS
list_filter(tokens, lambda token: NOT regexp_full_match(token, pattern));

-- Three ways to treat a token of more than `longest` characters. The first compares bytes, which
-- are no fewer than characters: to count characters costs more than to split a text.
CREATE OR REPLACE TEMP MACRO truncating(tokens, longest) AS
list_transform(
    tokens,
    lambda token: CASE WHEN strlen(token) > longest THEN left(token, longest) ELSE token END
);

CREATE OR REPLACE TEMP MACRO dropping_long(tokens, longest) AS
list_filter(tokens, lambda token: length(token) <= longest);

CREATE OR REPLACE TEMP MACRO refusing_long(tokens, longest) AS
list_transform(
    tokens,
    lambda token: CASE WHEN length(token) > longest THEN error('dphh: too long') ELSE token END
);

-- The tokens without NULLs and empty ones.
CREATE OR REPLACE TEMP MACRO not_empty(tokens) AS
list_filter(tokens, lambda token: token <> '');

-- The sort key of sequences: first their spelling, which every engine orders alike. Two sequences
-- can have the same spelling if a token contains the separator; the other parts distinguish them.
CREATE OR REPLACE TEMP MACRO sort_key(tokens) AS
(array_to_string(tokens, chr(31)), len(tokens), tokens);

CREATE OR REPLACE TEMP MACRO in_order(sequences) AS
list_transform(
    list_sort(
        list_transform(
            sequences,
            lambda tokens: row(sort_key(tokens), tokens)
        )
    ),
    lambda spelling_and_tokens: spelling_and_tokens[2]
);

-- One of the values that together identify a row's user: its length in bytes and the value itself,
-- so that no two combinations of values are spelled alike.
CREATE OR REPLACE TEMP MACRO spelled_in_bytes(content) AS
CAST(strlen(CAST(content AS VARCHAR)) AS VARCHAR) || ':' || CAST(content AS VARCHAR); -- noqa: CP05

-- Functions of Spark that DuckDB lacks, for queries that both run.
CREATE OR REPLACE TEMP MACRO explode(list) AS
unnest(list);

CREATE OR REPLACE TEMP MACRO array_size(list) AS
len(list);

-- The first element is number 1; past the end the result is NULL.
CREATE OR REPLACE TEMP MACRO try_element_at(list, place) AS
list[place];

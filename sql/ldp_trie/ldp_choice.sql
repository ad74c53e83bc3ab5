-- LDP TrieHH, one level on the devices, before randomisation (Algorithm 2, lines 11 to 13): each
-- user chooses at most $contributions of the next prefixes of the user's words.
-- In: words_in_seats (seat, word, times); known (word); prefixes (prefix, value) of the level
-- below, where value is that of the prefix followed by character number 0.
-- Out: chosen (seat, report, value), report from 1.
CREATE TEMP TABLE chosen AS
WITH

words AS (
    SELECT
        words_in_seats.seat,
        words_in_seats.word,
        words_in_seats.times
    FROM words_in_seats
    ANTI JOIN known ON words_in_seats.word = known.word
    WHERE words_in_seats.seat > $first_seat AND words_in_seats.seat <= $last_seat
),

next_prefixes AS (
    SELECT
        words.seat,
        prefixes.value + CASE
            WHEN length(words.word) = $level THEN $characters
            ELSE unicode(substr(words.word, $level + 1, 1)) - 1
        END AS value,
        CAST(sum(words.times) AS BIGINT) AS times
    FROM words
    INNER JOIN prefixes ON left(words.word, $level) = prefixes.prefix
    GROUP BY ALL
),

-- A random number for each of a user's prefixes, new at every level: the choice depends on that
-- user's words and random numbers alone.
draws AS MATERIALIZED (
    SELECT
        seat,
        value,
        CASE $sampling WHEN 'greedy' THEN -times ELSE 0 END AS rank,
        dphh_word(seat || chr(31) || value, $purpose || '/sample') AS draw
    FROM next_prefixes
)

SELECT
    seat,
    row_number() OVER (PARTITION BY seat ORDER BY rank, draw, value) AS report,
    value
FROM draws
QUALIFY report <= $contributions;

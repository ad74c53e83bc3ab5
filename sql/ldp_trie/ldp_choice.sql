-- LDP TrieHH, one level on the devices, before randomisation (Algorithm 2, lines 11 to 13): each
-- user chooses at most $contributions of the next prefixes of the user's words. For each of a
-- user's prefixes there is a random number, new at every level: the choice depends on that user's
-- words and random numbers alone.
-- In: words_in_seats (seat, word, row_count); known (word); prefixes (prefix, value) of the level
-- below: value encodes the prefix and character number 0 after it.
-- Out: choice_draws (seat, value, rank, draw), drawn once; chosen (seat, report, value), report
-- from 1.
CREATE TEMP TABLE choice_draws AS
WITH

words AS (
    SELECT words_in_seats.seat, words_in_seats.word, words_in_seats.row_count
    FROM words_in_seats
    ANTI JOIN known ON words_in_seats.word = known.word
    WHERE words_in_seats.seat > $seats_before AND words_in_seats.seat <= $last_seat
),

held AS (
    SELECT
        words.seat,
        CAST(
            prefixes.value + CASE
                WHEN length(words.word) = $level THEN $character_count
                ELSE ascii(substr(words.word, $level + 1, 1)) - 1
            END AS BIGINT
        ) AS value,
        words.row_count
    FROM words
    INNER JOIN prefixes ON left(words.word, $level) = prefixes.prefix
),

next_prefixes AS (
    SELECT seat, value, CAST(sum(row_count) AS BIGINT) AS row_count
    FROM held
    GROUP BY seat, value
)

SELECT
    seat,
    value,
    CASE $sampling WHEN 'greedy' THEN -row_count ELSE 0 END AS rank,
    dphh_word(seat || chr(31) || value, $purpose || '/sample') AS draw
FROM next_prefixes;

CREATE TEMP TABLE chosen AS
WITH

ranked AS (
    SELECT
        seat,
        value,
        row_number() OVER (PARTITION BY seat ORDER BY rank, draw, value) AS report
    FROM choice_draws
)

SELECT seat, report, value
FROM ranked
WHERE report <= $contributions;

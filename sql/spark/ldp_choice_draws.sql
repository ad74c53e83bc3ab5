-- LDP TrieHH, one level on the devices: the next prefixes that a user holds, with a draw for each,
-- fresh at every level.
-- In: words_in_seats (seat, word, times); known (word); prefixes (prefix, value), those of the
-- level below, and the value of each with character number 0.
-- Out: choice_draws (seat, value, times, draw), drawn once.
CREATE TABLE choice_draws AS
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

held AS (
    SELECT
        words.seat,
        prefixes.value + CASE
            WHEN char_length(words.word) = $level THEN $characters
            ELSE ascii(substring(words.word, $level + 1, 1)) - 1
        END AS value,
        words.times
    FROM words
    INNER JOIN prefixes ON substring(words.word, 1, $level) = prefixes.prefix
),

next_prefixes AS (
    SELECT
        seat,
        CAST(value AS BIGINT) AS value,
        CAST(sum(times) AS BIGINT) AS times
    FROM held
    GROUP BY seat, value
)

SELECT
    seat,
    value,
    times,
    dphh_word(seat || chr(31) || value, $purpose || '/sample') AS draw
FROM next_prefixes;

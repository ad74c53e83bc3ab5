-- Which user is asked at which level (Gboard, Algorithm 2, line 7): $seats users, sampled without
-- replacement, in a secret random order. The first seats serve the first level, the next ones the
-- next level, and no user serves twice. If there are fewer users, made-up ones without words are
-- added, who take seats like all others. The draws are a hash under the run's secret key, so that a
-- resumed run gives users the same seats; ties are broken by user id, never by rows.
-- In: local_words (user_id, word, row_count); $purpose, for which a run draws once.
-- Out: draws (user_id, name, draw), drawn once; words_in_seats (seat, word, row_count), the words
-- of the users who are asked, seat from 1. The steps after this one see seats, no user ids.
CREATE TEMP TABLE draws AS
WITH

users AS (
    SELECT DISTINCT user_id
    FROM local_words
),

counted AS (
    SELECT count(*) AS users
    FROM users
),

made_up AS (
    SELECT chr(31) || places.place AS name
    FROM range($seats) AS places (place)
    INNER JOIN counted ON places.place < $seats - counted.users
),

everyone AS (
    SELECT user_id, user_id AS name
    FROM users
    UNION ALL
    SELECT NULL AS user_id, name
    FROM made_up
)

SELECT user_id, name, dphh_word(name, $purpose) AS draw
FROM everyone;

-- No task sorts all users: users are counted by the first 16 bits of their draws, and sorted only
-- among those with the same bits. (Rounding may change the bits, but keeps their order.)
CREATE TEMP TABLE words_in_seats AS
WITH

led AS (
    SELECT user_id, name, draw, CAST(floor(draw / 281474976710656) AS INTEGER) AS bits
    FROM draws
),

counted AS (
    SELECT bits, count(*) AS users
    FROM led
    GROUP BY bits
),

filling AS (
    SELECT
        bits,
        sum(users) OVER (ORDER BY bits) - users AS users_before
    FROM counted
),

in_order AS (
    SELECT
        led.user_id,
        CAST(
            filling.users_before
            + row_number() OVER (PARTITION BY led.bits ORDER BY led.draw, led.name)
            AS BIGINT
        ) AS seat
    FROM led
    INNER JOIN filling ON led.bits = filling.bits
)

SELECT in_order.seat, local_words.word, local_words.row_count
FROM local_words
INNER JOIN in_order ON local_words.user_id = in_order.user_id
WHERE local_words.word IS NOT NULL AND in_order.seat <= $seats;

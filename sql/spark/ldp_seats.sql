-- Who is asked when (Gboard, Algorithm 2, line 7): $seats users, drawn without replacement and in
-- an order that nobody can foretell; the first so many serve the first level, the next the next,
-- and nobody serves twice. No task sorts everybody: draws are counted by their 16 leading bits and
-- ordered within those.
-- In: draws (user_id, name, draw).
-- Out: seats (user_id, seat), seat from 1; idle seats are not listed.
CREATE TABLE seats AS
WITH

led AS (
    SELECT
        user_id,
        name,
        draw,
        CAST(floor(draw / 281474976710656) AS INT) AS bits
    FROM draws
),

counted AS (
    SELECT
        bits,
        count(*) AS users
    FROM led
    GROUP BY bits
),

before AS (
    SELECT
        bits,
        sum(users) OVER (ORDER BY bits) - users AS seated
    FROM counted
),

in_order AS (
    SELECT
        led.user_id,
        before.seated
        + row_number() OVER (PARTITION BY led.bits ORDER BY led.draw, led.name) AS seat
    FROM led
    INNER JOIN before ON led.bits = before.bits
)

SELECT
    user_id,
    seat
FROM in_order
WHERE user_id IS NOT NULL AND seat <= $seats;

-- The demo's corpus, the same every time: $users people with a few rows of words each.
-- Known truth: words 'popular-N' that many share, the more the smaller N; 'circle-N' that five
-- people share; 'secret-N' that one person alone has. No real data, so no secret needs keeping.
WITH

people AS (SELECT range AS person FROM range($users)),

popular AS (
    SELECT
        people.person,
        -- Uniform over (0, 1) from a hash, bent so that word N has about 1/N of the weight.
        'popular-' || CAST(
            floor(pow($words, hash(people.person, turn.range, 'word') / 18446744073709551616.0))
            AS INTEGER
        ) AS word
    FROM people, range(12) AS turn
),

circles AS (
    SELECT
        person,
        'circle-' || (person // 5) AS word
    FROM people
),

secrets AS (
    SELECT
        person,
        'secret-' || person AS word
    FROM people
),

words AS (
    FROM popular
    UNION ALL
    FROM circles
    UNION ALL
    FROM secrets
),

messages AS (
    SELECT
        person AS author,
        string_agg(word, ' ' ORDER BY hash(person, word)) AS body
    FROM words
    GROUP BY person, hash(person, word) % 3
)

SELECT * FROM messages
ORDER BY hash(author, body);

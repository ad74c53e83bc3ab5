-- The demo's corpus, the same every time: $users people with a few rows of words each.
-- Known truth: words 'popular_N' that many share, the more the smaller N; 'circle_N' that five
-- people share; 'secret_N' that one person alone has. No real data, so no secret needs keeping.
WITH

people AS (SELECT range AS person FROM range($users)),

popular AS (
    SELECT
        person,
        -- 12 popular words a person, by a hash: N is drawn in proportion to about 1/N.
        [
            'popular_' || CAST(
                floor(pow($words, hash(person, turn, 'word') / 18446744073709551616.0)) AS INTEGER
            )
            FOR turn IN range(12)
        ] AS words
    FROM people
),

held AS (
    SELECT person, list_concat(words, ['circle_' || (person // 5), 'secret_' || person]) AS words
    FROM popular
),

-- A person's words in the order of a hash, which also puts each word into one of three messages.
shuffled AS (
    SELECT
        person,
        list_sort(
            [struct_pack(place := hash(person, word), word := word) FOR word IN words]
        ) AS words
    FROM held
),

messages AS (
    SELECT
        person AS author,
        array_to_string(
            [each['word'] FOR each IN words IF each['place'] % 3 = message.range], ' '
        ) AS body
    FROM shuffled, range(3) AS message
)

SELECT * FROM messages
WHERE body <> ''
ORDER BY hash(author, body);

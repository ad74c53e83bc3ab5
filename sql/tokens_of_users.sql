-- The tokens of the texts at some places, as they lie.
CREATE OR REPLACE TEMP MACRO tokens_of_users(first_place, last_place) AS TABLE
    SELECT
        place,
        is_first,
        name,
        group_name,
        tokens_of(content) AS tokens
    FROM texts_of_users
    WHERE place BETWEEN first_place AND last_place;

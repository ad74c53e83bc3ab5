-- One sequence a user for the whole run: a random row of the user, so that a sequence is chosen in
-- proportion to its frequency among the user's rows. TrieHH's Algorithm 3 draws it anew at each
-- level; here it is drawn once, as in the published proof (docs/trie.md). The choice depends only
-- on the user's rows and one random word, so a resumed run, with the same one, chooses alike. (The
-- remainder favours some rows by less than 2^-32. Privacy does not depend on it: docs/trie.md.)
-- In: sequences_of_rows (user_id, tokens), of users of several rows; $purpose, for which a run
-- draws once. Out: chosen (user_id, tokens).
CREATE TEMP TABLE chosen AS
WITH

sequences_of_users AS (
    SELECT user_id, array_agg(tokens) AS sequences
    FROM sequences_of_rows
    GROUP BY user_id
)

SELECT
    user_id,
    CASE
        WHEN array_size(sequences) = 1 THEN try_element_at(sequences, 1)
        ELSE
            try_element_at(in_order(sequences), 1 + CAST(
                dphh_word(user_id, $purpose) % array_size(sequences)
                AS INT
            ))
    END AS tokens
FROM sequences_of_users;

-- The words of the users who are asked, by seat. The steps after this one see seats, no user ids.
-- In: local_words, seats. Out: words_in_seats (seat, word, times).
CREATE TEMP TABLE words_in_seats AS
SELECT seats.seat, local_words.word, local_words.times
FROM local_words
INNER JOIN seats ON local_words.user_id = seats.user_id
WHERE local_words.word IS NOT NULL;

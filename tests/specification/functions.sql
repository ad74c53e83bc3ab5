-- The functions of the plain queries, in exact integer arithmetic. Engines compute the same for
-- many users at a time (udfs/kernel/contributions.py, udfs/arrays.py). dphh_noise and
-- dphh_word are no macros, because they use the randomness of a run.
-- noqa: disable=CP05

-- floor(sqrt(n)) for 0 <= n < 2^62. The float square root may be wrong by one.
CREATE OR REPLACE TEMP MACRO dphh_float_root(n) AS
CAST(floor(sqrt(n)) AS BIGINT);

CREATE OR REPLACE TEMP MACRO dphh_isqrt(n) AS
CASE
    WHEN dphh_float_root(n) * dphh_float_root(n) > n THEN dphh_float_root(n) - 1
    WHEN (dphh_float_root(n) + 1) * (dphh_float_root(n) + 1) <= n THEN dphh_float_root(n) + 1
    ELSE dphh_float_root(n)
END;

-- The least integer whose square is at least n.
CREATE OR REPLACE TEMP MACRO dphh_root_up(n) AS
dphh_isqrt(n) + CASE WHEN dphh_isqrt(n) * dphh_isqrt(n) < n THEN 1 ELSE 0 END;

-- The weight of each of a user's t keys, floor(2^bits / sqrt(t)): an L2 norm of at most 2^bits.
CREATE OR REPLACE TEMP MACRO dphh_even_weight(t, bits) AS
dphh_isqrt((CAST(1 AS BIGINT) << (2 * bits)) // t);

-- z in units of 2^-15: the estimate of an item's weight from earlier rounds, plus one standard
-- deviation, divided by the next threshold; at most 400.
CREATE OR REPLACE TEMP MACRO dphh_z(noisy_sum, total_precision, deviation, threshold) AS
least(
    greatest(noisy_sum + CAST(total_precision AS BIGINT) * deviation, 0) // total_precision,
    400 * CAST(threshold AS BIGINT)
) * 32768 // threshold;

-- w, an item's relative weight in a later round of a set union, in units of 2^-15: z^(3/4) below 1,
-- else z^(-1/2), and at least 1/20.
CREATE OR REPLACE TEMP MACRO dphh_weight_of_z(z) AS
greatest(
    CASE
        WHEN z < 32768 THEN dphh_isqrt(z * dphh_isqrt(z * 32768))
        ELSE dphh_isqrt(35184372088832 // greatest(z, 1))
    END,
    1638
);

CREATE OR REPLACE TEMP MACRO dphh_weight(noisy_sum, total_precision, deviation, threshold) AS
dphh_weight_of_z(dphh_z(noisy_sum, total_precision, deviation, threshold));

-- How many finds a user of the forecast ladder is expected to hold: of the finds so far, the grams
-- that a level has not decided, and those that may be there further up.
CREATE OR REPLACE TEMP MACRO dphh_expected(finds, undecided, longer) AS
(23 * finds + 10 * undecided + 4 * longer) // 20;

-- What is left of a purse beside the reserve for these finds. `reserve` is [the part of a purse
-- that a find costs, the least number of finds that are kept for, the largest]; [0, 0, 0] is none.
CREATE OR REPLACE TEMP MACRO dphh_free(purse, expected, reserve) AS
greatest(purse - reserve[1] * least(greatest(expected, reserve[2]), reserve[3]), 0);

-- Addition and multiplication of unsigned 64-bit integers, which wrap around at 2^64.
CREATE OR REPLACE TEMP MACRO dphh_low_64_bits(n) AS
CAST(n % CAST(18446744073709551616 AS UHUGEINT) AS UBIGINT);

CREATE OR REPLACE TEMP MACRO dphh_plus(one, other) AS
dphh_low_64_bits(CAST(one AS UHUGEINT) + CAST(other AS UHUGEINT));

CREATE OR REPLACE TEMP MACRO dphh_times(one, other) AS
dphh_low_64_bits(CAST(one AS UHUGEINT) * CAST(other AS UHUGEINT));

CREATE OR REPLACE TEMP MACRO dphh_factor(shift) AS
CASE shift WHEN 30 THEN 13787848793156543929 WHEN 27 THEN 10723151780598845931 ELSE 1 END;

-- SplitMix64's finaliser (Steele, Lea and Flood, 2014) in three steps, by which every input bit
-- affects every output bit.
CREATE OR REPLACE TEMP MACRO dphh_mix_bits(hash, salt) AS
list_reduce(
    CAST([30, 27, 31] AS UBIGINT[]),
    (lambda mixed, shift: dphh_times(xor(mixed, mixed >> shift), dphh_factor(shift))), -- noqa: PRS
    dphh_plus(dphh_plus(hash, salt), 11400714819323198485)
);

-- Up to eight bytes, written in hexadecimal digits, as one number: the first byte is the lowest.
CREATE OR REPLACE TEMP MACRO dphh_eight_bytes(digits) AS
list_reduce(
    list_transform(
        range(length(digits) - 1, 0, -2),
        lambda place: CAST('0x' || substr(digits, place, 2) AS UBIGINT)
    ),
    (lambda number, byte: 256 * number + byte) -- noqa: PRS
);

-- A hash of a text's bytes: of its length, then of eight bytes at a time.
CREATE OR REPLACE TEMP MACRO dphh_hash_of_spelling(content) AS
list_reduce(
    list_transform(
        range(1, 2 * strlen(content), 16),
        lambda start: dphh_eight_bytes(substr(hex(encode(content)), start, 16))
    ),
    (lambda hash, eight: dphh_mix_bits(xor(hash, eight), 0)), -- noqa: PRS
    dphh_mix_bits(strlen(content), 0)
);

-- The hash by which a user's keys are ordered, new with each level's salt: a user with more than
-- max_items keys keeps the first ones. It depends on this user, this key and the salt alone, not on
-- other users. `key` is a 64-bit number: a gram's key, or the hash of a word's spelling.
CREATE OR REPLACE TEMP MACRO dphh_place(key, user_id, salt) AS
dphh_mix_bits(
    xor(key, dphh_mix_bits(dphh_hash_of_spelling(CAST(user_id AS VARCHAR)), salt)), 0
) >> 24;

-- DPNE, "Scaling up": a random sample of V_k, drawn again where it is in supp(H_k).
-- Which of the proposed keys somebody holds. The answer is private: it decides, inside the run,
-- which spurious grams are drawn again, and goes nowhere else.
SELECT proposed.number
FROM proposed
SEMI JOIN noised ON proposed.key = noised.key;

-- The release: every noised count, and every noised sum of what bounding removed.
SELECT key, noisy
FROM noised;

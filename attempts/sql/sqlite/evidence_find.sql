-- A failure counts only on the machine that saw it.
SELECT sequence, attempt, machine_id, repository, producer, key, verdict, passed, reusable, tree, payload, wall_ms
FROM evidence
WHERE key = ?1 AND reusable = 1 AND (passed = 1 OR machine_id = ?2)
ORDER BY sequence DESC
LIMIT 1;

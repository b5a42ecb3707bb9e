SELECT sequence, attempt, machine_id, repository, producer, key, verdict, passed, reusable, tree, payload, wall_ms
FROM evidence
WHERE repository IS ?1 AND producer = ?2 AND reusable = 1
ORDER BY sequence DESC
LIMIT 1;

SELECT sequence, attempt, event, detail, wall_ms FROM history
WHERE ?1 IS NULL OR attempt = ?1
ORDER BY sequence;

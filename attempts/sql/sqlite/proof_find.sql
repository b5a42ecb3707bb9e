-- The newest that fits; a null fits all.
SELECT id, attempt, fence, commit_hash, tree, demand, key_id, envelope, wall_ms
FROM proof
WHERE (?1 IS NULL OR repository = ?1)
    AND (?2 IS NULL OR tree = ?2)
    AND (?3 IS NULL OR commit_hash = ?3)
    AND (?4 IS NULL OR demand = ?4)
    AND (?5 = 0 OR fence < ?5)
ORDER BY fence DESC
LIMIT 1;

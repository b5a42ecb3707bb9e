-- As list_all, of what has not ended. However many have, this reads only the few that have not.
SELECT id FROM attempt INDEXED BY attempt_unfinished
WHERE state IN ('planning', 'running')
    AND ((?1 IS NULL AND ?2 IS NULL)
        OR repository = ?1
        OR id IN (SELECT attempt FROM subject WHERE subject IN (SELECT value FROM json_each(?2))))
ORDER BY fence DESC
LIMIT ?3;

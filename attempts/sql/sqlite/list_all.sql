-- Newest first: of a repository, or holding one of the subjects (a JSON array); both null: every one.
SELECT id FROM attempt
WHERE (?1 IS NULL AND ?2 IS NULL)
    OR repository = ?1
    OR id IN (SELECT attempt FROM subject WHERE subject IN (SELECT value FROM json_each(?2)))
ORDER BY fence DESC
LIMIT ?3;

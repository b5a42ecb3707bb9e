-- Parameters: schema, id, token, kind, subjects, executor, repository, journal handle, host and path, ttl, bind if clear.
SELECT result, message, record
FROM tenure.reserve($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
WHERE tenure.fail_newer($1) IS NOT NULL;

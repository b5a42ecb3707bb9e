-- Parameters: schema, id, token, table, key column, key, soft-delete column, executor, repository, journal handle, host
-- and path, ttl, bind if clear.
SELECT 'invalid' AS result, pg_catalog.format('there is no table %s', $4::pg_catalog.text) AS message,
    NULL::pg_catalog.jsonb AS record
WHERE pg_catalog.to_regclass($4) IS NULL
UNION ALL
SELECT result, message, record
FROM tenure.claim_row_as($2, $3, pg_catalog.to_regclass($4), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
WHERE pg_catalog.to_regclass($4) IS NOT NULL AND tenure.fail_newer($1) IS NOT NULL;

-- Parameters: schema, id, token, machine, producer, key, verdict, passed, reusable, repository, tree, payload,
-- nonce.
SELECT result, message, sequence
FROM tenure.evidence_put($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
WHERE tenure.fail_newer($1) IS NOT NULL;

SELECT id, attempt, fence, commit_hash, tree, demand, key_id, pg_catalog.encode(envelope, 'hex') AS envelope, tenure.milliseconds(at) AS at
FROM tenure.proof_find($2, $3, $4, $5, $6)
WHERE tenure.fail_newer($1) IS NOT NULL;

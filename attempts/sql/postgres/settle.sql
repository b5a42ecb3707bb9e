-- Parameters: schema, id, token, state, nonce, reason, its text; of the Proof: id, envelope, commit, tree, demand, key,
-- repository.
SELECT result, message
FROM tenure.settle($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
WHERE tenure.fail_newer($1) IS NOT NULL;

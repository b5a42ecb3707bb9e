-- The last one before its COMMIT. Parameters: id, token, state, nonce, reason, its text.
SELECT tenure.publication_end($1, $2, $3, $4, $5, $6);

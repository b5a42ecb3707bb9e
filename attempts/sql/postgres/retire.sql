SELECT result, message FROM tenure.retire($2, $3, $4, $5, $6, $7) WHERE tenure.fail_newer($1) IS NOT NULL;

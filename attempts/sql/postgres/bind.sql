SELECT result, message FROM tenure.bind($2, $3, $4) WHERE tenure.fail_newer($1) IS NOT NULL;

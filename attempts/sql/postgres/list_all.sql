SELECT record FROM tenure.attempts($2, $3, $4) AS record WHERE tenure.fail_newer($1) IS NOT NULL;

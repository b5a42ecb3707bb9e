SELECT record FROM tenure.find($2) AS record WHERE tenure.fail_newer($1) IS NOT NULL;

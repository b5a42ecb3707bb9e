-- Parameters: schema, machine, boot, whether those of earlier boots are forgotten.
SELECT record FROM tenure.leftovers($2, $3, $4) AS record WHERE tenure.fail_newer($1) IS NOT NULL;

SELECT schema_version, unfinished, ended, evidence, proofs
FROM tenure.store()
WHERE tenure.fail_newer($1) IS NOT NULL;

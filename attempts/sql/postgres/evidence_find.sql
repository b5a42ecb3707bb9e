SELECT sequence, attempt, machine_id, repository, producer, key, verdict, passed, reusable, tree, payload,
    tenure.milliseconds(at) AS at
FROM tenure.evidence_find($2, $3)
WHERE tenure.fail_newer($1) IS NOT NULL;

SELECT sequence, attempt, event, detail, tenure.milliseconds(at) AS at
FROM tenure.events($2)
WHERE tenure.fail_newer($1) IS NOT NULL;

-- As renew.sql for one attempt, which is what nearly every process holds: half the time of arrays.
SELECT result, reason_code, reason_text, reason_by, coalesce(cancel_requested, false) AS cancel_requested
FROM tenure.renew($2::pg_catalog.uuid, $3::pg_catalog.bytea, $4::pg_catalog.text, $5::pg_catalog.int8, $6::pg_catalog.int8)
WHERE tenure.fail_newer($1) IS NOT NULL;

-- As renew.sql for one attempt, which is what nearly every process holds: half the time of arrays.
SELECT result, reason_code, reason_text, reason_by, coalesce(cancel_requested, false) AS cancel_requested
FROM tenure.renew($2::uuid, $3::bytea, $4::text, $5::bigint, $6::bigint)
WHERE tenure.fail_newer($1) IS NOT NULL;

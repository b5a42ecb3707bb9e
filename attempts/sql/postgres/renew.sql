-- Arrays, one element for each attempt: ids, tokens, phases, done, total. The answers come in their order.
SELECT result, reason_code, reason_text, reason_by, coalesce(cancel_requested, false) AS cancel_requested
FROM tenure.renew($2, $3, $4, $5, $6)
WHERE tenure.fail_newer($1) IS NOT NULL;

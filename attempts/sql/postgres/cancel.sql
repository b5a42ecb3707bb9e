SELECT result, message FROM tenure.request_cancel($2, $3) WHERE tenure.fail_newer($1) IS NOT NULL;

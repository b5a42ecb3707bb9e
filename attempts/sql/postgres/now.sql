SELECT tenure.milliseconds(tenure.now()) WHERE tenure.fail_newer($1) IS NOT NULL;

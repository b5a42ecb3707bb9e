SELECT tenure.leftover_delete($2) WHERE tenure.fail_newer($1) IS NOT NULL;

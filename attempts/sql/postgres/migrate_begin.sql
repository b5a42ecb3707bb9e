-- One at a time; who waited looks again, in a new snapshot. The key is "tenure" in ASCII.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL search_path = pg_catalog;
SET LOCAL synchronous_commit = 'on';
SET LOCAL idle_in_transaction_session_timeout = '5s';
SELECT pg_catalog.pg_advisory_xact_lock(x'74656e757265'::pg_catalog.int8);

-- Which database this is, whatever address led to it.
SELECT (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c) || '/' || d.oid AS identity
FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database();

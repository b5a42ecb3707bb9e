-- As invariants.sql, of a store on PostgreSQL alone.

SELECT 'I1: two unfinished attempts name one subject: ' || a.id || ', ' || b.id
  FROM attempt a JOIN attempt b ON a.fence < b.fence
 WHERE a.state IN ('planning', 'running') AND b.state IN ('planning', 'running') AND a.subjects && b.subjects;

SELECT 'I2: attempt ' || id || ' has a fence above the last one handed out'
  FROM attempt WHERE fence > (SELECT last_value FROM tenure.fence);

SELECT 'a session of ' || application_name || ' was left in a transaction: ' || query
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%';

SELECT 'a lock was left on ' || coalesce(relation::regclass::text, locktype)
  FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE database = datid AND datname = current_database() AND application_name = 'tenure';

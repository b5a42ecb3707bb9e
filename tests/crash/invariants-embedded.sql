-- As invariants.sql, of the embedded store alone.

SELECT 'I1: two unfinished attempts name one subject: ' || a.id || ', ' || b.id
  FROM attempt a JOIN attempt b ON a.fence < b.fence
 WHERE a.state IN ('planning', 'running') AND b.state IN ('planning', 'running')
   AND EXISTS (SELECT 1 FROM json_each('["' || replace(a.subjects, char(10), '","') || '"]') x
                       JOIN json_each('["' || replace(b.subjects, char(10), '","') || '"]') y
                    USING (value) WHERE value <> '');

SELECT 'I2: attempt ' || id || ' has a fence above the last one handed out'
  FROM attempt WHERE fence > (SELECT last FROM fence);

SELECT 'the database is damaged: ' || integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok';
SELECT 'a reference leads nowhere: ' || "table" || ' row ' || rowid FROM pragma_foreign_key_check;

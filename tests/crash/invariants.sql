-- Each row is a broken promise. Runs on a store in which nothing is under way any more,
-- of either kind; what only one kind can be asked stands in the file of its name.

SELECT 'I1: ' || subject || ' is held by ' || attempt || ', which is ' || coalesce(a.state, 'not there')
  FROM subject s LEFT JOIN attempt a ON a.id = s.attempt
 WHERE a.state IS NULL OR a.state NOT IN ('planning', 'running');

SELECT 'nothing runs, and yet attempt ' || id || ' is ' || state
  FROM attempt WHERE state IN ('planning', 'running');

-- Fences follow the order of the reserves.
SELECT 'I2: ' || b.attempt || ' was reserved after ' || a.attempt || ' and has the smaller fence'
  FROM history a JOIN history b ON a.sequence < b.sequence
  JOIN attempt x ON x.id = a.attempt JOIN attempt y ON y.id = b.attempt
 WHERE a.event = 'reserved' AND b.event = 'reserved' AND x.fence >= y.fence;
SELECT 'I2: attempt ' || id || ' was reserved ' || n || ' times'
  FROM (SELECT a.id, count(h.sequence) AS n FROM attempt a
          LEFT JOIN history h ON h.attempt = a.id AND h.event = 'reserved' GROUP BY a.id) AS each
 WHERE n <> 1;

-- An end comes once, and nothing after it.
SELECT 'I4: attempt ' || id || ' is ' || state || ' and ended ' || n || ' times'
  FROM (SELECT a.id, a.state, count(h.sequence) AS n FROM attempt a
          LEFT JOIN history h ON h.attempt = a.id AND h.event IN ('settled', 'retired') GROUP BY a.id) AS each
 WHERE n <> 1;
SELECT 'I3: attempt ' || later.attempt || ' was written (' || later.event || ') after its end'
  FROM history later JOIN history e ON e.attempt = later.attempt AND e.event IN ('settled', 'retired')
 WHERE later.sequence > e.sequence;
SELECT 'I4: the history of attempt ' || h.attempt || ' ends in ' || h.detail || ', its record in ' || a.state
  FROM history h JOIN attempt a ON a.id = h.attempt
 WHERE h.event IN ('settled', 'retired') AND substr(h.detail, 1, length(a.state)) <> a.state;

SELECT 'I6: attempt ' || id || ' (' || kind || ', ' || state || ') has ' || n || ' Proofs'
  FROM (SELECT a.id, a.kind, a.state, count(p.id) AS n FROM attempt a
          LEFT JOIN proof p ON p.attempt = a.id GROUP BY a.id) AS each
 WHERE n <> CASE WHEN kind = 'done' AND state = 'passed' THEN 1 ELSE 0 END;

-- Evidence and its line of history are one write.
SELECT 'evidence of attempt ' || id || ': ' || rows || ' rows, ' || lines || ' lines of history'
  FROM (SELECT id, (SELECT count(*) FROM evidence WHERE attempt = a.id) AS rows,
               (SELECT count(*) FROM history WHERE attempt = a.id AND event = 'evidence') AS lines
          FROM attempt a) AS each
 WHERE rows <> lines;

SELECT 'leftovers of attempt ' || l.attempt || ' were not ended' FROM leftover l;

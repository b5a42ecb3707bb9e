SELECT
    (SELECT count(*) FROM attempt WHERE state IN ('planning', 'running')),
    (SELECT count(*) FROM attempt WHERE state NOT IN ('planning', 'running')),
    (SELECT count(*) FROM evidence),
    (SELECT count(*) FROM proof);

-- The first statement of a publication: the fence, and for how long the row's lock may stand for the lease.
SELECT tenure.publication_begin($2, $3) AS fence, (tenure.find($2::pg_catalog.text) ->> 'ttl_ms') AS ttl_ms
WHERE tenure.fail_newer($1) IS NOT NULL;

-- By id, or the newest by handle.
SELECT id FROM attempt WHERE id = ?1 OR journal_handle = ?1 ORDER BY fence DESC LIMIT 1;

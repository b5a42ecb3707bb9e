DELETE FROM leftover WHERE machine_id = ?1 AND boot_id <> ?2;

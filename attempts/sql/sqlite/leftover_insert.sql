INSERT INTO leftover (attempt, machine_id, boot_id, journal_path, subjects)
SELECT id, coalesce(machine_id, ''), coalesce(boot_id, ''), journal_path, subjects FROM attempt WHERE id = ?1;

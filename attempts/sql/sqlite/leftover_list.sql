SELECT leftover.attempt, leftover.journal_path, leftover.subjects,
    attempt.machine_id, attempt.boot_id, host, user, incarnation, pid_namespace, pid, start_ticks, uid
FROM leftover JOIN attempt ON attempt.id = leftover.attempt
WHERE leftover.machine_id = ?1 AND leftover.boot_id = ?2
ORDER BY attempt.fence;

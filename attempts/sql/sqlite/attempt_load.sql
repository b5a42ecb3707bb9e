-- One record. The reader takes the columns in this order.
SELECT id, record_version, fence, token_digest, kind, state, repository, subjects,
    machine_id, boot_id, host, user, incarnation, pid_namespace, pid, start_ticks, uid,
    journal_handle, journal_host, journal_path,
    reason_code, reason_text, reason_by,
    ttl_ms, epoch, acquired_at, renewed_at, expires_at,
    acquired_wall_ms, renewed_wall_ms, settled_wall_ms,
    rev, progress_phase, progress_done, progress_total,
    cancel_by, cancel_wall_ms, settle_nonce
FROM attempt
WHERE id = ?1;

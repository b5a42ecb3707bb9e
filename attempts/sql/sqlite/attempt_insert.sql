-- A new attempt. Its subjects are held already, and its fence was drawn after that.
INSERT INTO attempt (id, record_version, fence, token_digest, kind, state, repository, subjects,
    machine_id, boot_id, host, user, incarnation, pid_namespace, pid, start_ticks, uid,
    journal_handle, journal_host, journal_path,
    ttl_ms, epoch, acquired_at, renewed_at, expires_at, acquired_wall_ms, renewed_wall_ms, rev)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
    ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
    ?18, ?19, ?20,
    ?21, ?22, ?23, ?24, ?25, ?26, ?27, 1);

-- A heartbeat: nothing but the lease's end, the revision and the progress. A progress of null is none.
UPDATE attempt SET
    renewed_at = ?2,
    expires_at = ?3,
    renewed_wall_ms = ?4,
    rev = rev + 1,
    progress_phase = coalesce(?5, progress_phase),
    progress_done = coalesce(?6, progress_done),
    progress_total = coalesce(?7, progress_total)
WHERE id = ?1;

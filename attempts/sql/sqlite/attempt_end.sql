-- Settled (with a nonce) or retired (with reason_by).
UPDATE attempt SET
    state = ?2,
    reason_code = ?3,
    reason_text = ?4,
    reason_by = ?5,
    settled_wall_ms = ?6,
    settle_nonce = ?7,
    rev = rev + 1
WHERE id = ?1;

UPDATE attempt SET cancel_by = ?2, cancel_wall_ms = ?3, rev = rev + 1 WHERE id = ?1;

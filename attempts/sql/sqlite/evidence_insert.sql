INSERT INTO evidence (attempt, machine_id, repository, producer, key, verdict, passed, reusable, tree, payload,
    wall_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

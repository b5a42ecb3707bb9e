INSERT INTO proof (id, attempt, fence, repository, commit_hash, tree, demand, key_id, envelope, wall_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

INSERT INTO history (attempt, event, detail, wall_ms) VALUES (?1, ?2, ?3, ?4);

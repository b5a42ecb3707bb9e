UPDATE attempt SET state = ?2, demand = ?3, rev = rev + 1 WHERE id = ?1;

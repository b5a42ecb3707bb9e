DELETE FROM subject WHERE attempt = ?1;

DELETE FROM leftover WHERE attempt = ?1;

SELECT attempt FROM subject WHERE subject = ?1;

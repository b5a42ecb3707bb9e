-- The mutual exclusion: fails when the subject is held.
INSERT INTO subject (subject, attempt) VALUES (?1, ?2);

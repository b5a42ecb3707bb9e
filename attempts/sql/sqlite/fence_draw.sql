-- Above the last one, and above the microseconds since 1970: a restored copy never goes back.
UPDATE fence SET last = max(last + 1, ?1) RETURNING last;

SELECT value FROM tenure.meta WHERE name = 'schema_version';

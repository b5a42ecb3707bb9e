SELECT store_id, schema_version FROM tenure.identity();

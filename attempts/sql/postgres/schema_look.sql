-- Is there a schema `tenure`, is it a store's, and does the database hold tables of others? Operators are named in full:
-- a role's search_path may put its own before the system's. What an extension brought along is not counted.
SELECT
    pg_catalog.to_regnamespace('tenure') IS NOT NULL AS schema_exists,
    EXISTS (
        SELECT FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
        WHERE n.nspname OPERATOR(pg_catalog.=) 'tenure' AND c.relname OPERATOR(pg_catalog.=) 'meta') AS is_store,
    EXISTS (
        SELECT FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
        WHERE n.nspname OPERATOR(pg_catalog.<>) 'information_schema'
            AND NOT n.nspname OPERATOR(pg_catalog.~) '^pg_'
            AND NOT EXISTS (
                SELECT FROM pg_catalog.pg_depend d
                WHERE d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')) AS has_others;

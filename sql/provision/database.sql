-- The extension and the privileges of the database `lanes`. A superuser runs this script in that database, after roles.sql. It
-- may be run again.

CREATE EXTENSION IF NOT EXISTS lanes;
-- This does nothing if the installed version is the newest.
ALTER EXTENSION lanes UPDATE;

SELECT lanes.grant_gateway('lanes_gateway');
SELECT lanes.grant_reader('lanes');
-- The owner of the database decides how long samples stay, and where: ALTER TABLE lanes.samples SET (hot = …, retain = …).
ALTER TABLE lanes.samples OWNER TO lanes;
-- PostgreSQL's default path begins with a schema named like the role, which here is the schema of the extension. It has to come
-- last: queries need it only for functions such as time_bucket.
ALTER ROLE lanes IN DATABASE lanes SET search_path = public, lanes;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'lanes_reader') THEN
        PERFORM lanes.grant_reader('lanes_reader');
        ALTER DEFAULT PRIVILEGES FOR ROLE lanes IN SCHEMA public GRANT SELECT ON TABLES TO lanes_reader;
        -- Dashboards call time_bucket without a schema.
        ALTER ROLE lanes_reader IN DATABASE lanes SET search_path = public, lanes;
        ALTER ROLE lanes_reader IN DATABASE lanes SET default_transaction_read_only = on;
        ALTER ROLE lanes_reader IN DATABASE lanes SET statement_timeout = '60s';
    END IF;
END
$$;

-- The roles of a cluster with a database `lanes`. A superuser runs this script in one transaction with the settings that hold the
-- passwords: provision.lanes, provision.lanes_gateway, provision.lanes_reader. A role without a password is left as it is. The
-- script may be run again.
--
--   lanes          owns the database; the role for people
--   lanes_gateway  has what lanes.grant_gateway grants, nothing else
--   lanes_reader   reads metrics and the owner's tables, and writes nothing; for dashboards
DO $$
DECLARE
    role     text;
    password text;
BEGIN
    FOREACH role IN ARRAY ARRAY['lanes', 'lanes_gateway', 'lanes_reader'] LOOP
        password := nullif(current_setting('provision.' || role, true), '');
        CONTINUE WHEN password IS NULL;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L', role, password);
        ELSE
            EXECUTE format('CREATE ROLE %I LOGIN PASSWORD %L', role, password);
        END IF;
    END LOOP;
END
$$;

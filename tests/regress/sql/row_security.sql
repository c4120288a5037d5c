-- Privileges and row security.
CREATE ROLE lanes_regress_reader;
CREATE ROLE lanes_regress_tenant;
CREATE TABLE t (id int, owner name, v text, secret text) USING lanes;
INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'lanes_regress_tenant' ELSE 'other' END, 'v' || i, 's' || i FROM generate_series(1, 6) i;
GRANT SELECT (id, v) ON t TO lanes_regress_reader;
SET ROLE lanes_regress_reader;
SELECT id, v FROM t ORDER BY id;
SELECT secret FROM t;
SELECT * FROM t;
INSERT INTO t VALUES (7);
DELETE FROM t;
TRUNCATE t;
RESET ROLE;

ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t TO lanes_regress_tenant USING (owner = current_user);
GRANT SELECT, INSERT, UPDATE, DELETE ON t TO lanes_regress_tenant;
SET ROLE lanes_regress_tenant;
SELECT id, owner FROM t ORDER BY id;
SELECT count(*) FROM t WHERE v LIKE 'v%';
-- A leaky function in the query only sees rows that the policy allows.
CREATE FUNCTION pg_temp.leak(text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
SELECT count(*) FROM (SELECT * FROM t WHERE pg_temp.leak(secret) ORDER BY id) s;
INSERT INTO t VALUES (8, 'lanes_regress_tenant', 'mine', 's');
INSERT INTO t VALUES (9, 'other', 'not mine', 's');
UPDATE t SET v = 'updated' WHERE id IN (1, 2);
UPDATE t SET owner = 'other' WHERE id = 2;
DELETE FROM t WHERE id IN (3, 4);
COPY (SELECT id, v FROM t ORDER BY id) TO STDOUT;
RESET ROLE;
SELECT id, owner, v FROM t ORDER BY id;
SET ROLE lanes_regress_reader;
SELECT id FROM t;
RESET ROLE;
ALTER TABLE t FORCE ROW LEVEL SECURITY;
SELECT count(*) FROM t;
ALTER TABLE t DISABLE ROW LEVEL SECURITY;
SET ROLE lanes_regress_reader;
SELECT id FROM t ORDER BY id;
RESET ROLE;

-- A security barrier view.
CREATE VIEW safe WITH (security_barrier) AS SELECT id, v FROM t WHERE id < 4;
GRANT SELECT ON safe TO lanes_regress_reader;
SET ROLE lanes_regress_reader;
SELECT * FROM safe ORDER BY id;
RESET ROLE;
DROP VIEW safe;
DROP FUNCTION pg_temp.leak(text);
DROP TABLE t;
DROP ROLE lanes_regress_reader, lanes_regress_tenant;

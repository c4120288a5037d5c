-- lanes.check: what it finds, and that it finds nothing in the tables that other tests left behind.
CREATE FUNCTION findings(target regclass) RETURNS TABLE (place text, problem text) LANGUAGE sql
    AS 'SELECT * FROM lanes.check(target)';
SELECT c.oid::regclass AS relation, f.* FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND a.amname = 'lanes'
    CROSS JOIN LATERAL findings(c.oid) f WHERE c.relkind IN ('r', 'm');
CREATE TABLE t (k int, v float8, s text, added int, PRIMARY KEY (k)) USING lanes WITH (order_by = 's, k');
SELECT * FROM lanes.check('t');
INSERT INTO t SELECT g * 7919 % 30011, CASE WHEN g % 7 <> 0 THEN g / 8.0 END, 'v' || g % 10 FROM generate_series(1, 30000) g;
CREATE INDEX t_v ON t USING hash (v);
CREATE INDEX t_s ON t USING gin (string_to_array(s, '')) WHERE v > 10;
DELETE FROM t WHERE k % 5 = 0;
SELECT * FROM lanes.check('t');
SELECT lanes.seal('t');
ALTER TABLE t ADD COLUMN later int DEFAULT 7, DROP COLUMN added;
UPDATE t SET v = -v WHERE k < 100;
INSERT INTO t SELECT g, 'NaN', 'new' FROM generate_series(30011, 31000) g;
SELECT * FROM lanes.check('t');
SELECT lanes.seal('t');
VACUUM t;
SELECT * FROM lanes.check('t');
BEGIN;
DELETE FROM t WHERE k < 1000;
INSERT INTO t SELECT -g, g, 'own' FROM generate_series(1, 100) g;
SELECT * FROM lanes.check('t');
ROLLBACK;
SELECT * FROM lanes.check('t');
-- An index that misses rows.
SELECT count(*) FROM t;
UPDATE pg_index SET indisready = false WHERE indexrelid = 't_v'::regclass;
INSERT INTO t VALUES (-1, 0.5, 'missed'), (-2, 0.5, 'missed');
UPDATE pg_index SET indisready = true WHERE indexrelid = 't_v'::regclass;
SELECT place, problem ~ '^it lacks an entry of row [0-9]+$' AS problem FROM lanes.check('t');
SELECT * FROM lanes.check('t', indexes => false);
REINDEX INDEX t_v;
SELECT * FROM lanes.check('t');
-- An index that is not valid is not used, and so not checked.
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 't_v'::regclass;
DELETE FROM t WHERE k < 0;
SELECT * FROM lanes.check('t');
DROP TABLE t;
-- The owner may call it; index expressions are evaluated as the owner, not as the caller.
CREATE TABLE h (i int) USING heap;
SELECT * FROM lanes.check('h');
DROP TABLE h;
SELECT * FROM lanes.check(NULL);
CREATE ROLE lanes_regress_owner;
CREATE ROLE lanes_regress_reader;
CREATE SCHEMA checked AUTHORIZATION lanes_regress_owner;
GRANT USAGE ON SCHEMA checked TO lanes_regress_reader;
SET ROLE lanes_regress_owner;
CREATE FUNCTION checked.who(int) RETURNS text LANGUAGE plpgsql IMMUTABLE
    AS $$ BEGIN RAISE NOTICE 'evaluated as %', current_user; RETURN 'x'; END $$;
CREATE TABLE checked.t (i int) USING lanes;
CREATE INDEX ON checked.t (checked.who(i)) WHERE i > 0;
GRANT SELECT ON checked.t TO lanes_regress_reader;
INSERT INTO checked.t VALUES (0), (-1);
RESET ROLE;
SET client_min_messages = warning;
UPDATE pg_index SET indisready = false WHERE indrelid = 'checked.t'::regclass;
INSERT INTO checked.t VALUES (1);
UPDATE pg_index SET indisready = true WHERE indrelid = 'checked.t'::regclass;
RESET client_min_messages;
SELECT * FROM lanes.check('checked.t');
SELECT current_user = session_user AS restored;
SET ROLE lanes_regress_reader;
SELECT * FROM lanes.check('checked.t');
RESET ROLE;
DROP SCHEMA checked CASCADE;
DROP ROLE lanes_regress_owner, lanes_regress_reader;
DROP FUNCTION findings;

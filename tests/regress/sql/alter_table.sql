-- ALTER TABLE in every form that touches stored rows, and the common ones that do not.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 5) i;

-- Adding columns: no default, a constant one, a volatile one, NOT NULL, generated, by a domain.
ALTER TABLE t ADD COLUMN a int;
ALTER TABLE t ADD COLUMN b text DEFAULT 'constant';
INSERT INTO t (id, v) VALUES (6, 'v6');
SELECT * FROM t ORDER BY id;
ALTER TABLE t ALTER COLUMN b SET DEFAULT 'another';
INSERT INTO t (id, v) VALUES (7, 'v7');
ALTER TABLE t ADD COLUMN c numeric NOT NULL DEFAULT 1.50;
ALTER TABLE t ADD COLUMN d float8 DEFAULT random() CHECK (d >= 0);
ALTER TABLE t ADD COLUMN e bool DEFAULT true, ADD COLUMN f int[] DEFAULT '{1,2}', ADD COLUMN g uuid DEFAULT '00000000-0000-0000-0000-000000000001';
ALTER TABLE t ADD COLUMN h int GENERATED ALWAYS AS (id * 2) STORED;
SELECT id, v, a, b, c, d BETWEEN 0 AND 1 AS d, e, f, g, h FROM t ORDER BY id;
SELECT count(DISTINCT d) FROM t;
ALTER TABLE t ADD COLUMN nope int NOT NULL;
SELECT count(*) FROM t WHERE b = 'constant';
UPDATE t SET a = id WHERE id < 3;
UPDATE t SET e = NULL, b = NULL WHERE id = 2;
DELETE FROM t WHERE id = 3;
SELECT id, v, a, b, c, e, f, h FROM t ORDER BY id;

-- Dropping columns, first, middle and last; and adding again under the same name.
ALTER TABLE t DROP COLUMN v;
ALTER TABLE t DROP COLUMN c, DROP COLUMN d;
INSERT INTO t (id, a) VALUES (8, 8);
SELECT id, a, b, e, f, g, h FROM t ORDER BY id;
ALTER TABLE t ADD COLUMN v int DEFAULT 42;
SELECT id, v FROM t ORDER BY id;
UPDATE t SET v = v + id;
SELECT id, v FROM t ORDER BY id;
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t DROP COLUMN IF EXISTS h;
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t DROP COLUMN id;
SELECT a, b, e, v FROM t ORDER BY v;
ALTER TABLE t ADD COLUMN id int;
UPDATE t SET id = v - 42;
SELECT id, a, v FROM t ORDER BY id;
COPY (SELECT * FROM t ORDER BY id) TO STDOUT;

-- Renaming.
ALTER TABLE t RENAME COLUMN a TO alpha;
ALTER TABLE t RENAME TO renamed;
SELECT id, alpha FROM renamed WHERE alpha IS NOT NULL ORDER BY id;
ALTER TABLE renamed RENAME TO t;
CREATE SCHEMA elsewhere;
ALTER TABLE t SET SCHEMA elsewhere;
SELECT count(*) FROM elsewhere.t;
ALTER TABLE elsewhere.t SET SCHEMA public;
DROP SCHEMA elsewhere;

-- Changing types: with a rewrite, without one, and failing.
CREATE TABLE typed (id int, i int, s text, n numeric(10, 2), z timestamp, c varchar(10)) USING lanes;
INSERT INTO typed SELECT k, k * 10, k::text, k / 3.0, timestamp '2026-01-01' + k * interval '1 day', 'c' || k FROM generate_series(1, 4) k;
INSERT INTO typed VALUES (5, NULL, NULL, NULL, NULL, NULL);
DELETE FROM typed WHERE id = 2;
ALTER TABLE typed ALTER COLUMN i TYPE int8;
ALTER TABLE typed ALTER COLUMN s TYPE int USING s::int + 1;
ALTER TABLE typed ALTER COLUMN n TYPE numeric(12, 1), ALTER COLUMN c TYPE varchar(20);
ALTER TABLE typed ALTER COLUMN c TYPE text;
SELECT *, pg_typeof(i), pg_typeof(s), pg_typeof(n), pg_typeof(c) FROM typed ORDER BY id;
ALTER TABLE typed ALTER COLUMN c TYPE int USING c::int;
ALTER TABLE typed ALTER COLUMN i TYPE text USING 'i=' || i;
SET timezone = 'UTC';
ALTER TABLE typed ALTER COLUMN z TYPE timestamptz;
SELECT * FROM typed ORDER BY id;
ALTER TABLE typed ALTER COLUMN i TYPE bool USING i IS NOT NULL;
INSERT INTO typed VALUES (6, false, 6, 6.66, '2026-06-06', 'six');
SELECT id, i, n, z, c FROM typed ORDER BY id;
BEGIN;
ALTER TABLE typed ALTER COLUMN s TYPE float8;
INSERT INTO typed (id, s) VALUES (7, 1.5);
SELECT id, s FROM typed ORDER BY id;
ROLLBACK;
SELECT id, s FROM typed ORDER BY id;

-- Constraints over existing rows.
ALTER TABLE typed ALTER COLUMN i SET NOT NULL;
ALTER TABLE typed ALTER COLUMN s SET NOT NULL;
DELETE FROM typed WHERE id = 5;
ALTER TABLE typed ALTER COLUMN s SET NOT NULL;
INSERT INTO typed (id, i) VALUES (9, true);
ALTER TABLE typed ALTER COLUMN s DROP NOT NULL;
ALTER TABLE typed ADD CONSTRAINT low CHECK (s < 5);
ALTER TABLE typed ADD CONSTRAINT low CHECK (s < 5) NOT VALID;
INSERT INTO typed (id, i, s) VALUES (9, true, 9);
ALTER TABLE typed VALIDATE CONSTRAINT low;
DELETE FROM typed WHERE s >= 5;
ALTER TABLE typed VALIDATE CONSTRAINT low;
ALTER TABLE typed DROP CONSTRAINT low;
SELECT id, s FROM typed ORDER BY id;

-- Storage settings, options, statistics, ownership, replica identity.
ALTER TABLE typed ALTER COLUMN c SET STORAGE EXTERNAL;
ALTER TABLE typed ALTER COLUMN c SET STATISTICS 10;
ALTER TABLE typed REPLICA IDENTITY FULL;
COMMENT ON TABLE typed IS 'a comment';
SELECT obj_description('typed'::regclass);

-- To heap and back.
CREATE TABLE moved (id int, v text) USING lanes;
INSERT INTO moved SELECT i, 'v' || i FROM generate_series(1, 3000) i;
DELETE FROM moved WHERE id % 3 = 0;
ALTER TABLE moved SET ACCESS METHOD heap;
SELECT count(*), sum(id) FROM moved;
UPDATE moved SET v = 'heap' WHERE id = 1;
ALTER TABLE moved SET ACCESS METHOD lanes;
SELECT count(*), sum(id), min(v) FROM moved;
SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE relname = 'moved';

-- Many columns.
DO $$ BEGIN EXECUTE (SELECT 'CREATE TABLE wide (' || string_agg('c' || i || ' int DEFAULT ' || i, ', ') || ') USING lanes' FROM generate_series(1, 500) i); END $$;
INSERT INTO wide (c7) SELECT -i FROM generate_series(1, 300) i;
SELECT count(*), sum(c1), sum(c7), sum(c500) FROM wide;
ALTER TABLE wide DROP COLUMN c499;
SELECT sum(c498), sum(c500) FROM wide;

-- Adding, rewriting and dropping in a transaction that has written the table.
BEGIN;
INSERT INTO moved VALUES (-1, 'in transaction');
ALTER TABLE moved ADD COLUMN k int DEFAULT 1;
INSERT INTO moved VALUES (-2, 'k', 2);
SELECT * FROM moved WHERE id < 0 ORDER BY id;
ALTER TABLE moved ALTER COLUMN k TYPE text;
SELECT * FROM moved WHERE id < 0 ORDER BY id;
DROP TABLE moved;
COMMIT;

-- Inheritance.
CREATE TABLE parent (id int, v text) USING lanes;
CREATE TABLE child (extra int) INHERITS (parent) USING lanes;
INSERT INTO parent VALUES (1, 'parent');
INSERT INTO child VALUES (2, 'child', 3);
SELECT tableoid::regclass, * FROM parent ORDER BY id;
ALTER TABLE parent ADD COLUMN later int DEFAULT 9;
UPDATE parent SET v = v || '!';
SELECT * FROM ONLY parent;
SELECT * FROM child;
DELETE FROM parent WHERE id = 2;
SELECT count(*) FROM child;

DROP TABLE t, typed, wide, child, parent;

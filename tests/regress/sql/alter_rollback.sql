-- A rolled-back change of a table's columns leaves no trace, although rows were read and written
-- under it.
CREATE TABLE t (id int, v int, d date) USING lanes;
INSERT INTO t VALUES (1, 1, '2026-01-01'), (2, 2, '2026-01-02');
SELECT * FROM t ORDER BY id;
BEGIN;
ALTER TABLE t DROP COLUMN d;
UPDATE t SET v = 5;
SELECT * FROM t ORDER BY id;
ROLLBACK;
SELECT * FROM t ORDER BY id;

-- A default that was never committed.
BEGIN;
ALTER TABLE t ADD COLUMN n int DEFAULT 1;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (3, 3, NULL, 3);
ROLLBACK;
ALTER TABLE t ADD COLUMN m int DEFAULT 2;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (4, 4, NULL, 4);
SELECT * FROM t ORDER BY id;

-- The change is in a savepoint, and the transaction continues.
BEGIN;
INSERT INTO t VALUES (5, 5, NULL, 5);
SAVEPOINT s;
ALTER TABLE t DROP COLUMN v, ADD COLUMN x text DEFAULT 'never';
INSERT INTO t VALUES (6, NULL, 6, 'six');
SELECT * FROM t ORDER BY id;
ROLLBACK TO s;
SELECT * FROM t ORDER BY id;
ALTER TABLE t ADD COLUMN x text DEFAULT 'ever';
INSERT INTO t VALUES (7, 7, NULL, 7, 'seven');
COMMIT;
SELECT * FROM t ORDER BY id;

-- A rewrite and a truncation are rolled back.
BEGIN;
ALTER TABLE t ALTER COLUMN v TYPE text USING 'v' || v;
SELECT * FROM t ORDER BY id;
INSERT INTO t VALUES (8, 'eight');
ROLLBACK;
SELECT * FROM t ORDER BY id;
BEGIN;
ALTER TABLE t DROP COLUMN x;
TRUNCATE t;
INSERT INTO t VALUES (9, 9);
SELECT * FROM t ORDER BY id;
ROLLBACK;
SELECT * FROM t ORDER BY id;

-- PREPARE TRANSACTION with a change of columns, rolled back.
BEGIN;
ALTER TABLE t DROP COLUMN d;
INSERT INTO t VALUES (10, 10);
SELECT count(*) FROM t;
PREPARE TRANSACTION 'lanes_shape';
ROLLBACK PREPARED 'lanes_shape';
SELECT * FROM t ORDER BY id;

-- The number of a rolled-back column now belongs to a column of another type. Sealing and ANALYZE
-- read the rows that were written under the old column before anything else has noticed their
-- rollback.
BEGIN;
ALTER TABLE t ADD COLUMN y text;
INSERT INTO t (id, y) VALUES (11, 'eleven');
PREPARE TRANSACTION 'lanes_shape';
ROLLBACK PREPARED 'lanes_shape';
ALTER TABLE t ADD COLUMN y float8 DEFAULT 0.5;
SELECT lanes.seal('t');
SELECT id, y FROM t ORDER BY id;
BEGIN;
ALTER TABLE t ADD COLUMN z text;
INSERT INTO t (id, z) VALUES (12, 'twelve');
PREPARE TRANSACTION 'lanes_shape';
ROLLBACK PREPARED 'lanes_shape';
ALTER TABLE t ADD COLUMN z bool DEFAULT true;
ANALYZE t;
SELECT id, z FROM t ORDER BY id;
DROP TABLE t;

-- UNLOGGED and TEMP tables.
CREATE UNLOGGED TABLE unlogged (id int, v text) USING lanes;
INSERT INTO unlogged SELECT i, 'v' || i FROM generate_series(1, 3000) i;
UPDATE unlogged SET v = 'changed' WHERE id = 1;
DELETE FROM unlogged WHERE id > 2000;
SELECT count(*), sum(id), min(v) FROM unlogged;
ALTER TABLE unlogged SET LOGGED;
SELECT count(*), sum(id), relpersistence FROM unlogged, pg_class WHERE relname = 'unlogged' GROUP BY relpersistence;
INSERT INTO unlogged VALUES (5000, 'logged');
ALTER TABLE unlogged SET UNLOGGED;
SELECT count(*), sum(id), relpersistence FROM unlogged, pg_class WHERE relname = 'unlogged' GROUP BY relpersistence;
TRUNCATE unlogged;
INSERT INTO unlogged VALUES (1, 'one');
SELECT * FROM unlogged;
BEGIN;
TRUNCATE unlogged;
INSERT INTO unlogged VALUES (2, 'two');
ROLLBACK;
SELECT * FROM unlogged;

-- TEMP tables are invisible to other sessions and end with their session.
CREATE TEMP TABLE mine (id int, v text) USING lanes;
INSERT INTO mine SELECT i, 'v' || i FROM generate_series(1, 3000) i;
UPDATE mine SET v = 'changed' WHERE id = 1;
DELETE FROM mine WHERE id > 2000;
SELECT count(*), sum(id), min(v) FROM mine;
ALTER TABLE mine ADD COLUMN n int DEFAULT 3;
SELECT sum(n) FROM mine;
VACUUM mine;
ANALYZE mine;
SELECT count(*) FROM mine;
TRUNCATE mine;
SELECT count(*) FROM mine;
BEGIN;
INSERT INTO mine VALUES (1, 'kept');
SAVEPOINT a;
INSERT INTO mine VALUES (2, 'not kept');
ROLLBACK TO a;
COMMIT;
SELECT * FROM mine;

-- A temporary table larger than the local buffers.
SHOW temp_buffers;
INSERT INTO mine SELECT i, md5(i::text), i FROM generate_series(1, 200000) i;
SELECT count(*), sum(id::int8), count(DISTINCT v) FROM mine;

CREATE TEMP TABLE emptied (id int) USING lanes ON COMMIT DELETE ROWS;
INSERT INTO emptied VALUES (1);
SELECT count(*) FROM emptied;
BEGIN;
INSERT INTO emptied VALUES (1), (2);
SELECT count(*) FROM emptied;
COMMIT;
SELECT count(*) FROM emptied;
BEGIN;
INSERT INTO emptied VALUES (3);
SELECT * FROM emptied;
COMMIT;
BEGIN;
CREATE TEMP TABLE dropped (id int) USING lanes ON COMMIT DROP;
INSERT INTO dropped VALUES (1);
SELECT count(*) FROM dropped;
COMMIT;
SELECT count(*) FROM dropped;
CREATE TEMP TABLE as_select USING lanes ON COMMIT PRESERVE ROWS AS SELECT i FROM generate_series(1, 100) i;
SELECT count(*), sum(i) FROM as_select;

-- A temp table joins ordinary ones.
SELECT count(*) FROM mine JOIN as_select ON as_select.i = mine.id;
DISCARD TEMP;
SELECT count(*) FROM mine;
DROP TABLE unlogged;

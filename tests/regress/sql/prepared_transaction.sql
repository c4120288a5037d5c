-- Two-phase commit. Rows of a prepared transaction belong to it until it is committed or rolled
-- back.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three');

BEGIN;
INSERT INTO t SELECT i, 'prepared' FROM generate_series(10, 12) i;
UPDATE t SET v = 'changed' WHERE id = 1;
DELETE FROM t WHERE id = 2;
PREPARE TRANSACTION 'lanes_commit';
SELECT * FROM t ORDER BY id;
SELECT gid FROM pg_prepared_xacts ORDER BY gid;
COMMIT PREPARED 'lanes_commit';
SELECT * FROM t ORDER BY id;

BEGIN;
INSERT INTO t VALUES (20, 'never');
DELETE FROM t;
PREPARE TRANSACTION 'lanes_rollback';
SELECT count(*) FROM t;
ROLLBACK PREPARED 'lanes_rollback';
SELECT count(*) FROM t;
UPDATE t SET v = 'after' WHERE id = 3;
SELECT * FROM t ORDER BY id;

-- A prepared transaction with savepoints, one of them rolled back.
BEGIN;
INSERT INTO t VALUES (30, 'top');
SAVEPOINT a;
INSERT INTO t VALUES (31, 'released');
RELEASE a;
SAVEPOINT b;
INSERT INTO t VALUES (32, 'rolled back');
DELETE FROM t WHERE id = 1;
ROLLBACK TO b;
PREPARE TRANSACTION 'lanes_subtransactions';
COMMIT PREPARED 'lanes_subtransactions';
SELECT * FROM t ORDER BY id;

-- A row that a prepared transaction has deleted is locked.
BEGIN;
DELETE FROM t WHERE id = 30;
PREPARE TRANSACTION 'lanes_locked';
SET lock_timeout = '50ms';
\set SHOW_CONTEXT never
UPDATE t SET v = 'blocked' WHERE id = 30;
SELECT id FROM t WHERE id = 30 FOR UPDATE NOWAIT;
SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED;
RESET lock_timeout;
\set SHOW_CONTEXT errors
-- VACUUM must not remove the rows of a prepared transaction.
VACUUM t;
SELECT count(*) FROM t;
COMMIT PREPARED 'lanes_locked';
SELECT count(*) FROM t;

-- A table created and filled in a prepared transaction.
BEGIN;
CREATE TABLE made (i int) USING lanes;
INSERT INTO made VALUES (1), (2);
PREPARE TRANSACTION 'lanes_made';
COMMIT PREPARED 'lanes_made';
SELECT i FROM made ORDER BY i;
BEGIN;
TRUNCATE made;
INSERT INTO made VALUES (3);
PREPARE TRANSACTION 'lanes_truncated';
ROLLBACK PREPARED 'lanes_truncated';
SELECT i FROM made ORDER BY i;
SELECT gid FROM pg_prepared_xacts;

DROP TABLE t, made;

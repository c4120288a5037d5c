-- Savepoints and subtransactions: rows follow the fate of their subtransaction.
CREATE TABLE t (id int, v text) USING lanes;
BEGIN;
INSERT INTO t VALUES (1, 'top');
SAVEPOINT a;
INSERT INTO t VALUES (2, 'a');
SAVEPOINT b;
INSERT INTO t VALUES (3, 'b');
SELECT id FROM t ORDER BY id;
ROLLBACK TO b;
SELECT id FROM t ORDER BY id;
INSERT INTO t VALUES (4, 'b again');
RELEASE b;
SELECT id FROM t ORDER BY id;
ROLLBACK TO a;
SELECT id FROM t ORDER BY id;
INSERT INTO t VALUES (5, 'a again');
COMMIT;
SELECT * FROM t ORDER BY id;

-- Deletes and updates of own and of older rows are undone too.
BEGIN;
SAVEPOINT a;
DELETE FROM t WHERE id = 1;
UPDATE t SET v = 'changed' WHERE id = 5;
SELECT * FROM t ORDER BY id;
ROLLBACK TO a;
SELECT * FROM t ORDER BY id;
-- The row whose delete was rolled back can be changed again.
UPDATE t SET v = 'changed later' WHERE id = 1;
DELETE FROM t WHERE id = 5;
SAVEPOINT b;
UPDATE t SET v = 'lost' WHERE id = 1;
ROLLBACK TO b;
UPDATE t SET v = v || ', twice' WHERE id = 1;
RELEASE b;
COMMIT;
SELECT * FROM t ORDER BY id;

-- An outer delete of a row, and an inner delete of another row that is undone.
BEGIN;
INSERT INTO t SELECT i, 'sub' FROM generate_series(10, 19) i;
DELETE FROM t WHERE id = 10;
SAVEPOINT a;
DELETE FROM t WHERE id BETWEEN 11 AND 15;
SAVEPOINT b;
INSERT INTO t VALUES (20, 'deep');
UPDATE t SET v = 'deep' WHERE id = 16;
RELEASE b;
SELECT id, v FROM t WHERE id >= 10 ORDER BY id;
ROLLBACK TO a;
SELECT id, v FROM t WHERE id >= 10 ORDER BY id;
COMMIT;
SELECT id, v FROM t WHERE id >= 10 ORDER BY id;

-- An error inside a savepoint.
BEGIN;
INSERT INTO t VALUES (30, 'before');
SAVEPOINT a;
INSERT INTO t SELECT 31, (1 / (i - 3))::text FROM generate_series(1, 5) i;
ROLLBACK TO a;
INSERT INTO t VALUES (32, 'after');
COMMIT;
SELECT id FROM t WHERE id >= 30 ORDER BY id;

-- A whole transaction that is rolled back, then one that fails at commit.
BEGIN;
INSERT INTO t SELECT i, 'gone' FROM generate_series(100, 5000) i;
DELETE FROM t WHERE id < 50;
SELECT count(*) FROM t;
ROLLBACK;
SELECT count(*) FROM t;

-- plpgsql's exception blocks are subtransactions.
CREATE FUNCTION try_rows(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE failed int := 0;
BEGIN
    FOR i IN 1 .. n LOOP
        BEGIN
            INSERT INTO t VALUES (1000 + i, 'tried');
            IF i % 3 = 0 THEN RAISE EXCEPTION 'no'; END IF;
            IF i % 5 = 0 THEN DELETE FROM t WHERE id = 1000 + i; END IF;
        EXCEPTION WHEN raise_exception THEN failed := failed + 1;
        END;
    END LOOP;
    RETURN failed;
END $$;
SELECT try_rows(300);
SELECT count(*), sum(id), count(*) FILTER (WHERE id % 3 = 1) FROM t WHERE id > 1000;

-- Many live subtransactions, more than a snapshot caches (64).
BEGIN;
SELECT try_rows(100);
SELECT count(*) FROM t WHERE id > 1000;
SAVEPOINT a;
SELECT try_rows(100);
ROLLBACK TO a;
SELECT count(*) FROM t WHERE id > 1000;
COMMIT;
SELECT count(*) FROM t WHERE id > 1000;

-- DDL in a savepoint: rolling it back restores the table's rows.
BEGIN;
SAVEPOINT a;
TRUNCATE t;
INSERT INTO t VALUES (1, 'after truncate');
SELECT * FROM t;
SAVEPOINT b;
DROP TABLE t;
ROLLBACK TO b;
SELECT * FROM t;
ROLLBACK TO a;
SELECT count(*) FROM t;
SAVEPOINT c;
ALTER TABLE t ADD COLUMN extra int DEFAULT 5;
SELECT sum(extra) FROM t;
INSERT INTO t VALUES (2000, 'extra', 6);
ROLLBACK TO c;
SELECT count(*) FROM t;
CREATE TABLE short_lived (i int) USING lanes;
INSERT INTO short_lived VALUES (1);
ROLLBACK TO c;
COMMIT;
SELECT count(*) FROM t;
SELECT count(*) FROM short_lived;

-- Procedures commit in the middle.
CREATE PROCEDURE commit_every_third() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 9 LOOP
        INSERT INTO t VALUES (3000 + i, 'procedure');
        IF i % 3 = 0 THEN COMMIT; ELSIF i % 3 = 2 THEN ROLLBACK; END IF;
    END LOOP;
END $$;
CALL commit_every_third();
SELECT id FROM t WHERE id > 3000 ORDER BY id;

DROP TABLE t;
DROP FUNCTION try_rows(int);
DROP PROCEDURE commit_every_third();

-- The rows that one session sees at each isolation level. The isolation specs test concurrency.
CREATE TABLE t (id int, v text) USING lanes;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t;
INSERT INTO t VALUES (1, 'mine');
SELECT * FROM t;
UPDATE t SET v = 'mine, changed';
SELECT * FROM t;
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (2, 'second');
COMMIT;
SELECT * FROM t;

BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO t VALUES (3, 'serializable');
SELECT count(*) FROM t;
UPDATE t SET v = v || '!' WHERE id = 3;
COMMIT;
SELECT * FROM t ORDER BY id;

BEGIN READ ONLY;
SELECT count(*) FROM t;
INSERT INTO t VALUES (4, 'read only');
ROLLBACK;

-- An exported snapshot can be used only while its transaction is open.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pg_export_snapshot() IS NOT NULL AS exported;
SELECT count(*) FROM t;
COMMIT;

-- Command boundaries inside functions.
CREATE FUNCTION steps() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEXT (SELECT count(*) FROM t);
    INSERT INTO t VALUES (10, 'x');
    RETURN NEXT (SELECT count(*) FROM t);
    INSERT INTO t VALUES (11, 'x'), (12, 'x');
    RETURN NEXT (SELECT count(*) FROM t);
    UPDATE t SET v = 'y' WHERE id = 10;
    RETURN NEXT (SELECT count(*) FROM t WHERE v = 'y');
    DELETE FROM t WHERE id >= 11;
    RETURN NEXT (SELECT count(*) FROM t);
END $$;
SELECT * FROM steps();
SELECT * FROM t ORDER BY id;

-- A stable function uses the caller's snapshot, a volatile one the newest.
CREATE FUNCTION count_stable() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$;
CREATE FUNCTION count_volatile() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$;
WITH i AS (INSERT INTO t SELECT 20 + i, 'cte' FROM generate_series(1, 5) i RETURNING count_stable() AS s, count_volatile() >= count_stable() AS v) SELECT * FROM i;
SELECT count(*) FROM t;

-- txid functions and row ages.
BEGIN;
INSERT INTO t VALUES (40, 'xmin');
SELECT xmin::text::int8 = (txid_current() & 4294967295) AS mine FROM t WHERE id = 40;
SELECT txid_status(txid_current());
ROLLBACK;
SELECT count(*) FROM t WHERE id = 40;

DROP TABLE t;
DROP FUNCTION steps(), count_stable(), count_volatile();

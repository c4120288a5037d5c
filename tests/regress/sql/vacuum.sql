-- ANALYZE, VACUUM, VACUUM FULL and FREEZE.
CREATE TABLE t (id int, v text, f float8) USING lanes;
VACUUM t;
ANALYZE t;
INSERT INTO t SELECT i, 'v' || i % 10, CASE WHEN i % 4 <> 0 THEN i END FROM generate_series(1, 20000) i;
ANALYZE t;
SELECT reltuples FROM pg_class WHERE relname = 't';
SELECT attname, null_frac BETWEEN 0.2 AND 0.3 AS quarter_null, n_distinct FROM pg_stats WHERE tablename = 't' AND attname IN ('id', 'v') ORDER BY attname;
SELECT null_frac BETWEEN 0.2 AND 0.3 AS quarter_null FROM pg_stats WHERE tablename = 't' AND attname = 'f';
DELETE FROM t WHERE id % 2 = 0;
VACUUM t;
SELECT count(*), sum(id), sum(f) FROM t;
VACUUM ANALYZE t;
SELECT reltuples FROM pg_class WHERE relname = 't';
UPDATE t SET v = 'new' WHERE id < 100;
DELETE FROM t WHERE id > 15000;
VACUUM (FREEZE) t;
SELECT count(*), sum(id), sum(f), count(*) FILTER (WHERE v = 'new') FROM t;
INSERT INTO t VALUES (-1, 'after', 1);
SELECT * FROM t WHERE id < 3 ORDER BY id;
-- All rows are dead.
DELETE FROM t;
VACUUM t;
SELECT count(*) FROM t;
INSERT INTO t SELECT i, 'again', i FROM generate_series(1, 5000) i;
VACUUM FULL t;
SELECT count(*), sum(id), sum(f) FROM t;

-- FULL releases the space; VACUUM makes it reusable.
DELETE FROM t WHERE id > 10;
SELECT pg_relation_size('t') AS before \gset
VACUUM FULL t;
SELECT pg_relation_size('t') < :before AS smaller;
SELECT count(*), sum(id) FROM t;
TRUNCATE t;

-- relfrozenxid advances, but never past a row.
INSERT INTO t VALUES (1, 'old', 1);
SELECT relfrozenxid AS before FROM pg_class WHERE relname = 't' \gset
BEGIN; SELECT txid_current() IS NOT NULL; COMMIT;
BEGIN; SELECT txid_current() IS NOT NULL; COMMIT;
VACUUM (FREEZE) t;
SELECT age(relfrozenxid) < age(:'before'::xid) AS advanced FROM pg_class WHERE relname = 't';
SELECT * FROM t;

-- A dead row stays while a snapshot of this session can see it.
INSERT INTO t VALUES (2, 'held', 2);
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id;
COMMIT;
DELETE FROM t WHERE id = 2;
VACUUM t;
FETCH ALL FROM held;
CLOSE held;
SELECT id FROM t;

-- Aborted rows are removed, and counted nowhere.
BEGIN;
INSERT INTO t SELECT i, 'aborted', i FROM generate_series(1, 4000) i;
ROLLBACK;
VACUUM t;
SELECT count(*) FROM t;
INSERT INTO t SELECT i, 'kept', i FROM generate_series(10, 4009) i;
DO $$
BEGIN
    FOR i IN 1 .. 20 LOOP
        BEGIN
            INSERT INTO t SELECT k, 'sub', k FROM generate_series(1, 100) k;
            IF i % 2 = 0 THEN RAISE EXCEPTION 'undo'; END IF;
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
    END LOOP;
END $$;
VACUUM (ANALYZE, VERBOSE false) t;
SELECT v, count(*) FROM t GROUP BY v ORDER BY v;
SELECT reltuples FROM pg_class WHERE relname = 't';

-- VACUUM after columns were added and dropped.
ALTER TABLE t DROP COLUMN f;
ALTER TABLE t ADD COLUMN k int DEFAULT 5;
DELETE FROM t WHERE id % 3 = 0;
VACUUM t;
SELECT count(*), sum(k) FROM t;
VACUUM FULL t;
SELECT count(*), sum(k) FROM t;

-- Several tables, and the whole list of options.
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING, SKIP_LOCKED, INDEX_CLEANUP auto, PROCESS_TOAST true, TRUNCATE true, PARALLEL 0) t;
SELECT count(*) FROM t;
BEGIN;
VACUUM t;
ROLLBACK;

-- The report of VERBOSE without its DETAIL, which contains a time and a transaction id.
CREATE TABLE told (id int, v text) USING lanes;
INSERT INTO told SELECT i, 'v' || i FROM generate_series(1, 20000) i;
DELETE FROM told WHERE id % 4 = 0;
\set VERBOSITY terse
VACUUM (VERBOSE) told;
DELETE FROM told;
VACUUM (VERBOSE, TRUNCATE false) told;
VACUUM (VERBOSE) told;
\set VERBOSITY default
DROP TABLE told;

DROP TABLE t;

-- Workers are refused as of a temporary heap table with several indexes.
CREATE TEMP TABLE local (a int PRIMARY KEY, b int) USING lanes;
VACUUM (PARALLEL 2) local;
CREATE INDEX ON local (b);
VACUUM (PARALLEL 2) local;
VACUUM (PARALLEL 0) local;
DROP TABLE local;

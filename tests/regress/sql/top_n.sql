-- The first rows of an order, without sorting all rows. Each answer is compared with that of a heap
-- table.
CREATE TABLE l (id int, ts timestamptz, s text, f float8, r real, n int2, d date, t time, note text) USING lanes;
CREATE TABLE h (LIKE l) USING heap;
INSERT INTO h
SELECT i, '2026-01-01'::timestamptz + i * interval '1 s', 's' || i % 7,
       CASE WHEN i % 11 = 0 THEN 'NaN' WHEN i % 13 = 0 THEN NULL WHEN i % 17 = 0 THEN '-Infinity'
            WHEN i % 19 = 0 THEN '-0' WHEN i % 23 = 0 THEN '0' ELSE (i * 37 % 101) / 10.0 END,
       i % 5, i % 3, '2026-01-01'::date + i % 40, make_time(i % 24, i % 60, 0), CASE WHEN i % 4 > 0 THEN repeat('x', i % 50) END
FROM generate_series(1, 9000) i;
INSERT INTO l SELECT * FROM h;
ANALYZE l, h;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'l'; SET regress.heap_tables = 'h';
CREATE FUNCTION same(query text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.same_order(query, 'LanesTopN') $$;

-- Queries for which the node is offered.
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY ts DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id + 1 FROM l WHERE f > 3 AND id < 8000 ORDER BY ts LIMIT 5 OFFSET 2;
EXPLAIN (COSTS OFF) SELECT * FROM l WHERE length(lower(s)) + 0 * id = 2 ORDER BY f DESC NULLS LAST, id NULLS FIRST LIMIT 5;
-- If a further key is an expression of texts, PostgreSQL sorts the rows that tie.
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY ts, upper(s) LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY -id LIMIT 5;
-- Queries for which it is not offered: no limit, WITH TIES, an expression of texts first, row locks.
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY ts;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY ts LIMIT NULL;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY n FETCH FIRST 5 ROWS WITH TIES;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY upper(s), ts LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY ts LIMIT 5 FOR UPDATE;
EXPLAIN (COSTS OFF) SELECT n, count(*) FROM l GROUP BY n ORDER BY n LIMIT 5;
SET lanes.vectorize = require;
SELECT id FROM l ORDER BY ts DESC LIMIT 2;
SELECT id FROM l ORDER BY upper(s), ts LIMIT 2;
SET lanes.vectorize = on;

-- In an ordered table all vectors but one are skipped.
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT id FROM l ORDER BY ts DESC LIMIT 5;

-- Directions, NULLs, NaN, ties, offsets.
SELECT DISTINCT same(format('SELECT id, %s FROM l ORDER BY %s %s NULLS %s, id %s LIMIT %s OFFSET %s', k, k, d, n, e, c, o))
FROM unnest('{f, r, n, d, t, ts, id}'::text[]) k, unnest('{ASC, DESC}'::text[]) d, unnest('{FIRST, LAST}'::text[]) n,
     unnest('{ASC, DESC}'::text[]) e, (VALUES (1, 0), (10, 990), (3000, 0), (100, 8950), (0, 5)) v (c, o);
SELECT same('SELECT * FROM l WHERE f < 5 ORDER BY ts DESC LIMIT 20');
SELECT same('SELECT * FROM l WHERE s = ''s3'' ORDER BY ts DESC LIMIT 20');
SELECT same('SELECT * FROM l WHERE length(lower(note)) + 0 * id = 7 ORDER BY id LIMIT 20');
SELECT same('SELECT * FROM l WHERE length(lower(note)) + 0 * id = 7 AND f > 2 ORDER BY f, id DESC LIMIT 20 OFFSET 3');
SELECT same('SELECT id * 2, upper(note) FROM l WHERE false ORDER BY id LIMIT 20');
SELECT same('SELECT id FROM l WHERE id > 20000 ORDER BY id LIMIT 20');
SELECT same('SELECT q FROM (SELECT x FROM l x ORDER BY -id LIMIT 3) q');
SELECT same('SELECT id FROM l ORDER BY f, n, r, id, d LIMIT 30');
SELECT same('SELECT a.id, b.s FROM l a JOIN (VALUES (''s1''), (''s2'')) b (s) USING (s) ORDER BY a.ts DESC LIMIT 30');
SELECT same('SELECT (SELECT id FROM l WHERE ts < to_timestamp(1767225600 + x) ORDER BY ts DESC LIMIT 1) FROM generate_series(1, 30) x LIMIT 30');
SELECT same('SELECT x, q.* FROM generate_series(0, 9) x, LATERAL (SELECT id, f FROM l WHERE n = x % 4 ORDER BY f DESC, id LIMIT x) q');

-- Rows that exceed the memory take several passes.
SET work_mem = '64kB';
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT id FROM l ORDER BY ts DESC LIMIT 1000;
SELECT same('SELECT * FROM l ORDER BY f, id DESC LIMIT 8000');
RESET work_mem;

-- Limits that the planner does not know.
SET plan_cache_mode = force_generic_plan;
PREPARE first_rows (int, int, float8) AS SELECT id, f FROM l WHERE f >= $3 ORDER BY f, id DESC LIMIT $1 OFFSET $2;
PREPARE first_rows_of_heap (int, int, float8) AS SELECT id, f FROM h WHERE f >= $3 ORDER BY f, id DESC LIMIT $1 OFFSET $2;
EXPLAIN (COSTS OFF) EXECUTE first_rows(3, 1, 2.5);
EXECUTE first_rows(3, 1, 2.5);
EXECUTE first_rows_of_heap(3, 1, 2.5);
CREATE TEMP TABLE a AS EXECUTE first_rows(NULL, 0, 0);
CREATE TEMP TABLE b AS EXECUTE first_rows_of_heap(NULL, 0, 0);
SELECT count(*), count(*) FILTER (WHERE a IS DISTINCT FROM b) AS differ
FROM (SELECT id, f, ctid FROM a) a FULL JOIN (SELECT id, f, ctid FROM b) b USING (ctid);
RESET plan_cache_mode;

-- Cursors.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM l ORDER BY ts DESC LIMIT 300;
FETCH 2 FROM c;
INSERT INTO l (id, ts) VALUES (0, 'infinity');
DELETE FROM l WHERE id > 8990;
FETCH 2 FROM c;
SELECT id FROM l ORDER BY ts DESC NULLS LAST LIMIT 3;
UPDATE l SET ts = ts + interval '1 day' WHERE id = 5;
SELECT id, ts FROM l ORDER BY ts DESC LIMIT 3;
MOVE 295 FROM c;
FETCH 2 FROM c;
ROLLBACK;
SELECT id FROM l ORDER BY ts DESC LIMIT 2;

-- Rows that a policy hides are not candidates, and leaky functions do not see them.
CREATE ROLE regress_lanes_reader;
GRANT SELECT ON l TO regress_lanes_reader;
ALTER TABLE l ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON l USING (length(lower(s)) + 0 * id = 2 AND id < 100);
CREATE FUNCTION tell(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN IF $1 > 97 THEN RAISE NOTICE 'saw %', $1; END IF; RETURN true; END $$;
SET ROLE regress_lanes_reader;
EXPLAIN (COSTS OFF) SELECT id FROM l WHERE tell(id) AND id <> 98 ORDER BY ts DESC LIMIT 2;
SELECT id FROM l WHERE tell(id) AND id <> 98 ORDER BY ts DESC LIMIT 2;
RESET ROLE;
DROP POLICY few ON l;
ALTER TABLE l DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON l FROM regress_lanes_reader;
DROP ROLE regress_lanes_reader;

-- Partitions are merged.
CREATE TABLE p (ts timestamptz, v int) PARTITION BY RANGE (ts);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-02-01') USING lanes;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') USING lanes;
INSERT INTO p SELECT '2026-01-01'::timestamptz + i * interval '5 min', i * 7 % 1000 FROM generate_series(0, 12000) i;
ANALYZE p;
EXPLAIN (COSTS OFF) SELECT * FROM p ORDER BY v DESC, ts LIMIT 4;
SELECT * FROM p ORDER BY v DESC, ts LIMIT 4;
SELECT * FROM p ORDER BY ts DESC LIMIT 2;

-- Holes: deleted rows, aborted runs, vectors without a visible row.
BEGIN;
INSERT INTO l SELECT i, 'infinity', 'never', 0, 0, 0 FROM generate_series(1, 5000) i;
ROLLBACK;
INSERT INTO h SELECT 9000 + i, '2025-12-31'::timestamptz + i * interval '10 s', 's1', i, i, i % 3 FROM generate_series(1, 9000) i;
INSERT INTO l SELECT * FROM h WHERE id > 9000;
DELETE FROM l WHERE id BETWEEN 1500 AND 7000 OR id % 3 = 0 OR id % 64 < 5;
DELETE FROM h WHERE id BETWEEN 1500 AND 7000 OR id % 3 = 0 OR id % 64 < 5;
SELECT DISTINCT same(format('SELECT id, ts, f FROM l %s ORDER BY %s %s, id LIMIT %s', w, k, d, c))
FROM unnest('{"", WHERE n = 1, WHERE f > 5, WHERE length(lower(s)) + 0 * id > 1}'::text[]) w, unnest('{ts, f, id}'::text[]) k,
     unnest('{ASC, DESC}'::text[]) d, unnest('{1, 70, 3000}'::int[]) c;
-- An empty table.
CREATE TABLE e (ts timestamptz) USING lanes;
SELECT * FROM e ORDER BY ts LIMIT 3;
-- Sealed rows, in vectors of one segment or of many, after segments that zones exclude.
DROP TABLE l, h;
CREATE TABLE h (k int, ts timestamptz, b bool, n2 int2, n4 int4, n8 int8, r real, f float8, d date, s text, u uuid, m numeric) USING heap;
INSERT INTO h
SELECT i % 40, '2026-01-01'::timestamptz + i / 40 * interval '10 s', CASE WHEN i % 5 > 0 THEN i % 3 = 0 END, -(i % 300),
       CASE WHEN i % 7 > 0 THEN i::int8 * i % 1000 END, i::int8 * -1000000007, i % 13 / 4.0,
       CASE WHEN i % 31 = 0 THEN 'NaN' WHEN i % 37 > 0 THEN i * 7919::int8 % 101 / 10.0 END, '2026-01-01'::date - i % 90,
       CASE WHEN i % 3 > 0 THEN 's' || i % 9 END, md5(i::text)::uuid, CASE WHEN i % 4 > 0 THEN i / 7.0 END
FROM generate_series(1, 100000) i;
CREATE TABLE l (LIKE h) USING lanes WITH (order_by = 'k, ts');
INSERT INTO l SELECT * FROM h;
SELECT lanes.seal('l') > 0 AS sealed;
ANALYZE l, h;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT f, n8 FROM l WHERE k = 3 ORDER BY ts DESC LIMIT 1;
SELECT DISTINCT same(format('SELECT x, q.* FROM generate_series(-1, 41, 7) x, LATERAL (SELECT * FROM l WHERE k = x ORDER BY ts %s LIMIT %s) q', o, c))
FROM unnest('{ASC, DESC}'::text[]) o, unnest('{1, 3, 20}'::int[]) c;
SELECT same('SELECT * FROM l ORDER BY ts DESC, k LIMIT 50');
DELETE FROM l WHERE ts > '2026-01-01 06:55' AND k % 2 = 0;
DELETE FROM h WHERE ts > '2026-01-01 06:55' AND k % 2 = 0;
SELECT DISTINCT same(format('SELECT x, q.* FROM generate_series(-1, 41, 7) x, LATERAL (SELECT * FROM l WHERE k = x ORDER BY ts %s LIMIT %s) q', o, c))
FROM unnest('{ASC, DESC}'::text[]) o, unnest('{1, 3, 20}'::int[]) c;
DROP TABLE l, h, p, e, a, b;
DROP FUNCTION same(text);
DROP FUNCTION tell(int);
-- A run that does not start at a vector of its segment: two of its vectors fall into one of the
-- segment. Columns that only the result needs are read from both.
CREATE TABLE crossed (id int, v int, x int, note text) USING lanes WITH (order_by = 'id');
INSERT INTO crossed SELECT -1, 0, 7, 'old' FROM generate_series(1, 66000); SELECT lanes.seal('crossed'); DELETE FROM crossed;
INSERT INTO crossed SELECT i, (i::int8 * 7919) % 20000, i + 1, 'n' || i FROM generate_series(1, 20000) i; SELECT lanes.seal('crossed');
SET lanes.decode_after = 1000000;
SELECT count(*), count(*) FILTER (WHERE x <> id + 1 OR note <> 'n' || id) AS wrong FROM (SELECT id, x, note FROM crossed ORDER BY v DESC LIMIT 500) q;
SELECT count(*), count(*) FILTER (WHERE x <> id + 1 OR note <> 'n' || id) AS wrong FROM (SELECT DISTINCT ON (v) id, x, note FROM crossed ORDER BY v, id DESC) q;
RESET lanes.decode_after;
DROP TABLE crossed;

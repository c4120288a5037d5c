-- The latest row of each key, and the distinct keys. Each answer is compared with that of a heap
-- table.
CREATE TABLE l (id int, ts timestamptz, s text, b bool, f float8, n int2, d date, note text) USING lanes;
CREATE TABLE h (LIKE l) USING heap;
INSERT INTO h
SELECT i, '2026-01-01'::timestamptz + (i * 7919 % 9000) * interval '1 s', CASE WHEN i % 29 > 0 THEN 's' || i % 7 END, i % 2 = 0,
       CASE WHEN i % 11 = 0 THEN 'NaN' WHEN i % 13 = 0 THEN NULL WHEN i % 17 = 0 THEN '-Infinity'
            WHEN i % 19 = 0 THEN '-0' WHEN i % 23 = 0 THEN '0' ELSE (i * 37 % 101) / 10.0 END,
       i % 3, '2026-01-01'::date + i % 40, CASE WHEN i % 4 > 0 THEN repeat('x', i % 50) END
FROM generate_series(1, 9000) i;
INSERT INTO l SELECT * FROM h;
ANALYZE l, h;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'l'; SET regress.heap_tables = 'h';
CREATE FUNCTION same(query text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.same_order(query, 'LanesLatest|LanesAggregate') $$;

-- Queries for which the node is offered.
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (s) s, ts, f FROM l ORDER BY s, ts DESC;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (s, n) id + 1 FROM l WHERE f > 3 AND length(lower(note)) + 0 * id = 7 ORDER BY n, s, ts, f DESC NULLS LAST LIMIT 4;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (date_trunc('hour', ts)) ts, f FROM l ORDER BY date_trunc('hour', ts), ts DESC;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (b) * FROM l;
EXPLAIN (COSTS OFF) SELECT DISTINCT s FROM l;
EXPLAIN (COSTS OFF) SELECT DISTINCT s FROM l ORDER BY s;
EXPLAIN (COSTS OFF) SELECT DISTINCT s, n + 1 AS m FROM l WHERE id < 100 ORDER BY m DESC, s LIMIT 3;
EXPLAIN (COSTS OFF) SELECT s FROM l GROUP BY s;
-- Queries for which it is not offered.
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (s) s, note FROM l ORDER BY s, note;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (upper(s)) s FROM l ORDER BY upper(s), ts;
EXPLAIN (COSTS OFF) SELECT DISTINCT upper(s) FROM l;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT DISTINCT count(*) FROM l GROUP BY s;
RESET enable_sort;
SET lanes.vectorize = require;
SELECT DISTINCT ON (s) s, id FROM l ORDER BY s, ts DESC;
SELECT DISTINCT s FROM l ORDER BY s DESC;
SELECT DISTINCT ON (s) s, note FROM l ORDER BY s, note;
SELECT DISTINCT upper(s) FROM l;
SET lanes.vectorize = on;
EXPLAIN (COSTS OFF, ANALYZE, TIMING OFF, SUMMARY OFF) SELECT DISTINCT ON (s) s, id FROM l ORDER BY s, ts DESC;

-- Directions, NULLs, NaN, ties.
SELECT DISTINCT same(format('SELECT DISTINCT ON (%s) * FROM l ORDER BY %s, %s %s NULLS %s, id %s', g, g, k, d, n, e))
FROM unnest('{s, b, n, d, "s, n", "b, s, d", f}'::text[]) g, unnest('{f, n, d, ts, id}'::text[]) k,
     unnest('{ASC, DESC}'::text[]) d, unnest('{FIRST, LAST}'::text[]) n, unnest('{ASC, DESC}'::text[]) e;
SELECT same('SELECT DISTINCT ON (s) id FROM l WHERE length(lower(note)) + 0 * id = 7 ORDER BY s, ts DESC, id');
SELECT same('SELECT DISTINCT ON (s) id FROM l WHERE length(lower(note)) + 0 * id = 7 AND f > 5 ORDER BY s DESC, ts, id');
SELECT same('SELECT DISTINCT ON (s) id FROM l WHERE f > 500 ORDER BY s, ts DESC, id');
SELECT same('SELECT DISTINCT ON (date_trunc(''hour'', ts)) * FROM l ORDER BY date_trunc(''hour'', ts), f, id');
SELECT same('SELECT DISTINCT ON (s) l FROM l ORDER BY s, -id');
SELECT same('SELECT sum(id), count(*) FROM (SELECT DISTINCT ON (s) id FROM l ORDER BY s, ts DESC, id) q');
SELECT same('SELECT q.* FROM (VALUES (1), (3), (6)) v (x), LATERAL (SELECT DISTINCT ON (s) x, s, id FROM l WHERE f < x ORDER BY s, ts DESC, id) q ORDER BY x, s');
SELECT same('SELECT a.s, a.id FROM (SELECT DISTINCT ON (s) s, id FROM l ORDER BY s, ts DESC) a JOIN (SELECT DISTINCT ON (s) s, id FROM l ORDER BY s, ts DESC) b USING (id) ORDER BY 1');
SELECT DISTINCT same(format('SELECT DISTINCT %s FROM l %s ORDER BY %1$s DESC', g, w))
FROM unnest('{s, b, n, d, "s, n", "n + 1", "b, f + 0"}'::text[]) g, unnest('{"", "WHERE id % 7 = 1", "WHERE id % 7 > 7"}'::text[]) w;

-- Of rows that tie, the last one in row order is returned.
CREATE TABLE t (k int, ts int, v int) USING lanes;
INSERT INTO t SELECT i % 2, 1, i FROM generate_series(1, 5000) i;
SELECT DISTINCT ON (k) * FROM t ORDER BY k, ts DESC;
SELECT DISTINCT ON (k) * FROM t ORDER BY k, ts;

-- Prepared statements.
SET plan_cache_mode = force_generic_plan;
PREPARE latest (float8) AS SELECT DISTINCT ON (s) s, id FROM l WHERE f < $1 ORDER BY s, ts DESC;
EXPLAIN (COSTS OFF) EXECUTE latest(3);
EXECUTE latest(3);
EXECUTE latest(NULL);
RESET plan_cache_mode;

-- Changes of the same transaction.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT DISTINCT ON (n) n, id FROM l ORDER BY n, ts DESC, id;
FETCH 1 FROM c;
UPDATE l SET ts = 'infinity' WHERE id = 5;
DELETE FROM l WHERE n = 1;
INSERT INTO l (n, id, ts) VALUES (7, 0, '-infinity');
FETCH ALL FROM c;
SELECT DISTINCT ON (n) n, id FROM l ORDER BY n, ts DESC, id;
SELECT DISTINCT n FROM l ORDER BY n;
ROLLBACK;

-- Rows that a policy hides are not candidates.
CREATE ROLE regress_lanes_reader;
GRANT SELECT ON l TO regress_lanes_reader;
ALTER TABLE l ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON l USING (length(lower(s)) + 0 * id = 2 AND id < 8000);
CREATE FUNCTION tell(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN IF $1 > 7997 THEN RAISE NOTICE 'saw %', $1; END IF; RETURN true; END $$;
SET ROLE regress_lanes_reader;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (b) id FROM l WHERE tell(id) ORDER BY b, id;
SELECT DISTINCT ON (b) id FROM l WHERE tell(id) ORDER BY b, id DESC;
SELECT DISTINCT s FROM l ORDER BY s;
RESET ROLE;
DROP POLICY few ON l;
ALTER TABLE l DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON l FROM regress_lanes_reader;
DROP ROLE regress_lanes_reader;
CREATE TABLE e (k int, ts timestamptz) USING lanes;
SELECT DISTINCT ON (k) * FROM e ORDER BY k, ts DESC;
DROP TABLE l, h, t, e;
DROP FUNCTION same(text);
DROP FUNCTION tell(int);

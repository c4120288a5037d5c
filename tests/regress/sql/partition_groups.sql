-- Groups of rows that lie in several lanes tables: partitions, UNION ALL, inheritance. Each answer is compared with
-- PostgreSQL's own, by one process and by several.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE m (ts timestamptz NOT NULL, id int, k int, s text, f float8, b bool) PARTITION BY RANGE (ts);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM ('2024-01-01') TO ('2024-01-11') USING lanes;
-- A partition with other column numbers.
CREATE TABLE m2 (f float8, gone int, s text, b bool, k int, id int, ts timestamptz NOT NULL) USING lanes;
ALTER TABLE m2 DROP COLUMN gone;
ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM ('2024-01-11') TO ('2024-01-21');
-- A partition with partitions of its own, one of which is empty.
CREATE TABLE m3 PARTITION OF m FOR VALUES FROM ('2024-01-21') TO ('2024-03-01') PARTITION BY LIST (k);
CREATE TABLE m3a PARTITION OF m3 FOR VALUES IN (0, 1, 2, 3, 4) USING lanes;
CREATE TABLE m3b PARTITION OF m3 FOR VALUES IN (5, 6, 7, 8, 9) USING lanes;
CREATE TABLE m3c PARTITION OF m3 DEFAULT USING lanes;
INSERT INTO m SELECT '2024-01-01'::timestamptz + i * interval '1 min', i, i % 10, CASE WHEN i % 11 > 0 THEN 's' || i % 7 END,
    CASE WHEN i % 13 > 0 THEN i % 101 END, i % 3 = 0 FROM generate_series(1, 60000) i;
-- The planner is to expect few groups.
ALTER TABLE m ALTER id SET (n_distinct_inherited = 100), ALTER ts SET (n_distinct_inherited = 100);
ANALYZE m;
CREATE FUNCTION answer(query text, workers int, vectorize text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    PERFORM set_config('max_parallel_workers_per_gather', workers::text, true), set_config('lanes.vectorize', vectorize, true);
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO answer;
    RETURN answer;
END $$;
CREATE FUNCTION plan(query text, workers int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan text := ''; line text;
BEGIN
    PERFORM set_config('max_parallel_workers_per_gather', workers::text, true);
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    RETURN plan;
END $$;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE expected text := answer(query, 0, 'off'); one text := answer(query, 0, 'on'); several text := answer(query, 2, 'on');
BEGIN
    RETURN CASE WHEN expected IS DISTINCT FROM one THEN format('%s differs: %s instead of %s', query, one, expected)
        WHEN expected IS DISTINCT FROM several THEN format('%s of several processes differs: %s instead of %s', query, several, expected)
        WHEN plan(query, 0) NOT LIKE '%Finalize%Custom Scan (LanesAggregate)%' THEN 'same, but: ' || plan(query, 0)
        WHEN plan(query, 2) NOT LIKE '%Finalize%Gather%Parallel Custom Scan (LanesAggregate)%' THEN 'same, but not parallel'
        ELSE 'same' END;
END $$;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 0;
EXPLAIN (COSTS OFF) SELECT s, count(*), avg(f) FROM m WHERE f > 50 AND ts < '2024-01-25' GROUP BY s HAVING max(f) < 200;
SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT s, count(*), avg(f) FROM m WHERE f > 50 AND ts < '2024-01-15' GROUP BY s;

SELECT same('SELECT k, count(*), count(f), sum(id), avg(f)::numeric(20, 9), round(stddev(f)::numeric, 9), min(ts), max(f), bool_or(b) FROM m GROUP BY k');
SELECT same('SELECT s, k % 2, sum(id), avg(id) FROM m WHERE b GROUP BY 1, 2 HAVING count(*) > 10');
SELECT same('SELECT date_trunc(''day'', ts), s, max(f) FROM m WHERE ts BETWEEN ''2024-01-05'' AND ''2024-02-02'' GROUP BY 1, 2');
SELECT same('SELECT floor(extract(epoch FROM ts) / 3600) * 3600 AS hour, sum(f) FILTER (WHERE b) FROM m GROUP BY 1');
SELECT same('SELECT sum(id) + count(*) * 2, k + 1 FROM m GROUP BY k ORDER BY sum(id) DESC LIMIT 3');
SELECT same('SELECT k FROM m GROUP BY k');
SELECT same('SELECT sum(f), avg(id), count(f) FROM m WHERE f > 3');
SELECT same('SELECT sum(f), avg(id), count(f) FROM m WHERE f > 3000');
SELECT same('SELECT s, sum(f) FROM m WHERE f > 3000 GROUP BY s');
SELECT same('SELECT upper(s), extract(dow FROM ts), count(*) FROM m GROUP BY 1, 2');
SELECT same('SELECT m.s, count(*) FROM m WHERE k = 3 GROUP BY 1');
-- One partition is left.
SELECT same('SELECT s, count(*), sum(f) FROM m WHERE ts < ''2024-01-03'' GROUP BY 1') LIKE 'same%' AS same;
-- Groups that do not fit into memory.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT same('SELECT id % 20000, count(*), sum(f) FROM m GROUP BY 1');
SELECT same('SELECT md5((id % 20000)::text), count(*), sum(f) FROM m GROUP BY 1');
-- The same groups again, after some of them were put aside.
SET max_parallel_workers_per_gather = 0;
SELECT x, (SELECT count(*) FROM (SELECT md5((id % 20000)::text), count(*) FROM m GROUP BY 1 HAVING count(*) >= x) q)
    FROM generate_series(0, 2) x;
EXPLAIN (COSTS OFF) SELECT md5((id % 20000)::text), count(*) FROM m GROUP BY 1 HAVING count(*) >= 0;
SET max_parallel_workers_per_gather = 2;
RESET work_mem; RESET hash_mem_multiplier;

-- UNION ALL, also with expressions and constants; inheritance.
CREATE TABLE u1 (k int, s text, f float8) USING lanes;
CREATE TABLE u2 (s text, f float8, k int) USING lanes;
INSERT INTO u1 SELECT id % 20, s, f FROM m WHERE id % 2 = 0;
INSERT INTO u2 SELECT s, f, id % 20 FROM m WHERE id % 2 = 1;
ANALYZE u1; ANALYZE u2;
CREATE VIEW u AS SELECT k, s, f FROM u1 UNION ALL SELECT k, s, f FROM u2;
SELECT same('SELECT s, count(*), sum(f) FROM u WHERE k > 5 GROUP BY s');
SELECT same('SELECT k, max(f), avg(f)::numeric(20, 9) FROM u GROUP BY k HAVING max(f) > 3');
SELECT same('SELECT k, sum(g) FROM (SELECT k, f * 2 AS g FROM u1 UNION ALL SELECT k + 1, f FROM u2) x WHERE g < 70 GROUP BY k');
SELECT same('SELECT k, sum(g) FROM (SELECT k, f AS g FROM u1 UNION ALL SELECT k, f FROM u2 WHERE f < 70) x GROUP BY k') LIKE 'same%' AS same;
SELECT same('SELECT source, count(*), sum(f) FROM (SELECT ''one'' AS source, f FROM u1 UNION ALL SELECT ''two'', f FROM u2) x GROUP BY source') LIKE 'same%' AS same;
CREATE TABLE child (extra text) INHERITS (u1) USING lanes;
INSERT INTO child SELECT id % 7, s, f, 'more' FROM m WHERE id < 9000;
ANALYZE child;
SELECT same('SELECT k, count(*), sum(f) FROM u1 WHERE f > 10 GROUP BY k');
DROP TABLE child;

-- Parameters; a cached plan; cursors; the last result once more.
PREPARE since (timestamptz, float8) AS SELECT k, sum(id), count(f) FROM m WHERE ts > $1 AND f > $2 GROUP BY k ORDER BY k LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE since ('2024-01-20', 50);
EXECUTE since ('2024-02-05', 99);
RESET plan_cache_mode;
SET enable_material = off; SET enable_memoize = off;
SELECT x, (SELECT sum(f) FROM m WHERE f > x * 30) FROM generate_series(1, 3) x;
RESET enable_material; RESET enable_memoize;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, sum(id) FROM m WHERE f > 7 GROUP BY k ORDER BY k;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
-- Of many partitions, PostgreSQL's own nodes leave out those that a parameter rules out.
CREATE TABLE many (id int, v int) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE many_%s PARTITION OF many FOR VALUES FROM (%s) TO (%s) USING lanes', i, i * 100, i * 100 + 100)
    FROM generate_series(0, 9) i \gexec
INSERT INTO many SELECT i, i % 7 FROM generate_series(0, 999) i;
PREPARE one (int) AS SELECT v, count(*) FROM many WHERE id = $1 GROUP BY v;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE one (7);
EXECUTE one (7);
RESET plan_cache_mode;
SELECT same('SELECT v, count(*) FROM many WHERE id > 7 GROUP BY v') LIKE 'same%' AS same;
DROP TABLE many;
-- Sealed rows; deleted and new rows of this transaction.
SELECT lanes.seal('m1'), lanes.seal('m3b');
BEGIN;
DELETE FROM m WHERE k = 3 AND ts < '2024-01-13';
INSERT INTO m SELECT ts, id, 77, 'new', 60 FROM m WHERE id < 300;
SELECT same('SELECT k, s, count(*), sum(id) FROM m WHERE f > 50 GROUP BY k, s');
ROLLBACK;
SELECT same('SELECT k, s, count(*), sum(id) FROM m WHERE f > 50 GROUP BY k, s');
-- Privileges and row-level security of the parent count, those of partitions do not.
CREATE ROLE reader;
SELECT format('GRANT EXECUTE ON FUNCTION %s TO reader', oid::regprocedure) FROM pg_proc WHERE proname IN ('same', 'plan', 'answer') ORDER BY proname \gexec
SET ROLE reader;
SELECT k, count(*) FROM m GROUP BY k;
RESET ROLE;
GRANT SELECT ON m TO reader;
CREATE POLICY few ON m TO reader USING (k < 3);
ALTER TABLE m ENABLE ROW LEVEL SECURITY;
SET ROLE reader;
SELECT same('SELECT k, count(*), sum(f) FROM m GROUP BY k');
SELECT k, count(*) FROM m GROUP BY k ORDER BY k;
RESET ROLE;
ALTER TABLE m DISABLE ROW LEVEL SECURITY;
-- What stays with PostgreSQL: aggregates whose states cannot be combined, grouping sets, a heap partition, a condition of rows.
SELECT plan('SELECT k, count(DISTINCT s) FROM m GROUP BY k', 0) LIKE '%LanesAggregate%' AS distinct_values;
SELECT plan('SELECT k, lanes.last(f, ts) FROM m GROUP BY k', 0) LIKE '%LanesAggregate%' AS last;
SELECT plan('SELECT k, s, sum(f) FROM m GROUP BY ROLLUP (k, s)', 0) LIKE '%LanesAggregate%' AS rollup;
SELECT plan('SELECT k, sum(f) FROM m WHERE f * random() > 0 GROUP BY k', 0) LIKE '%LanesAggregate%' AS volatile;
CREATE TABLE m4 PARTITION OF m FOR VALUES FROM ('2024-03-01') TO ('2024-04-01') USING heap;
SELECT plan('SELECT k, sum(f) FROM m GROUP BY k', 0) LIKE '%LanesAggregate%' AS with_heap;
SELECT plan('SELECT k, sum(f) FROM m WHERE ts < ''2024-03-01'' GROUP BY k', 0) LIKE '%LanesAggregate%' AS without_heap;
-- Errors of a partition.
\set VERBOSITY terse
SELECT k, sum(1 / (id - 59999)) FROM m GROUP BY k;
DROP TABLE m, u1, u2 CASCADE;
DROP FUNCTION same(text);
DROP FUNCTION answer(text, int, text);
DROP FUNCTION plan(text, int);
DROP ROLE reader;

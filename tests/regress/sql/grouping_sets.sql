-- requires: before 16
-- GROUPING SETS, ROLLUP and CUBE: a LanesAggregate for each set.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (id int, k int, s text, b bool, f float8, ts timestamptz) USING lanes;
INSERT INTO l SELECT i, nullif(i % 5, 4), CASE WHEN i % 7 > 0 THEN 's' || i % 3 END, i % 2 = 0, i % 13, '2024-01-01'::timestamptz + i * interval '1 min' FROM generate_series(1, 2000) i;
SELECT lanes.seal('l') > 0 AS sealed;
INSERT INTO l SELECT i, i % 5, 's' || i % 3, NULL, i % 13, '2024-01-01'::timestamptz + i * interval '1 min' FROM generate_series(2001, 3000) i;
CREATE TABLE h (LIKE l);
INSERT INTO h SELECT * FROM l;
CREATE TABLE dim (k int, name text);
INSERT INTO dim SELECT i, 'name ' || i % 2 FROM generate_series(0, 8) i;
ANALYZE l; ANALYZE h; ANALYZE dim;
SET regress.lanes_tables = 'l';
SET regress.heap_tables = 'h';
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare

EXPLAIN (VERBOSE, COSTS OFF) SELECT k, s, GROUPING(k, s), count(*) FROM l GROUP BY ROLLUP (k, s) HAVING count(*) > 10 ORDER BY 1, 2;
SELECT pg_temp.same('SELECT k, s, GROUPING(k, s), GROUPING(s), count(*), sum(f), avg(id), max(ts) FROM l GROUP BY ROLLUP (k, s)');
SELECT pg_temp.same('SELECT k, s, b, count(*) FROM l GROUP BY CUBE (k, s, b)');
SELECT pg_temp.same('SELECT k, s, count(*) FROM l GROUP BY GROUPING SETS ((k), (s), (), (), (k, s))');
SELECT pg_temp.same('SELECT k, s, b, count(*) FROM l GROUP BY k, ROLLUP (s), CUBE (b)');
SELECT pg_temp.same('SELECT k, s, count(*) FROM l GROUP BY DISTINCT ROLLUP (k, s), ROLLUP (k)');
SELECT pg_temp.same('SELECT date_trunc(''hour'', ts) AS hour, s, sum(f) FROM l WHERE k > 1 GROUP BY ROLLUP (1, 2)');
SELECT pg_temp.same('SELECT k + 1, k + 1 > 2 AS more, coalesce(s, ''all''), sum(f) * 2 FROM l GROUP BY CUBE (k + 1, s)');
SELECT pg_temp.same('SELECT k, s, count(*) FROM l GROUP BY ROLLUP (k, s) HAVING count(*) > 100 AND GROUPING(s) = 1');
SELECT pg_temp.same('SELECT CASE WHEN GROUPING(k) = 1 THEN ''total'' ELSE k::text END, count(*) FROM l GROUP BY ROLLUP (k)');
SELECT pg_temp.same('SELECT k, s, sum(f), rank() OVER (PARTITION BY GROUPING(k) ORDER BY sum(f), s, k) FROM l GROUP BY CUBE (k, s)');
SELECT pg_temp.same('SELECT k, count(*) FILTER (WHERE b), count(DISTINCT k) FROM l GROUP BY ROLLUP (k)');
SELECT pg_temp.same('SELECT k, s, count(*) FROM l GROUP BY GROUPING SETS ((k, s), (k)) ORDER BY k, s, 3 LIMIT 7');
-- The first groups of all sets, out of the first groups of each.
SELECT pg_temp.same_order('SELECT k, id % 90 AS m, count(*), sum(id) FROM l GROUP BY ROLLUP (k, m) ORDER BY count(*) DESC, k, m LIMIT 12', 'Group Limit');
SELECT pg_temp.same_order('SELECT k, id % 90 AS m, count(*), sum(id) FROM l GROUP BY CUBE (k, m) ORDER BY k, m DESC, count(*) LIMIT 12', 'Group Limit');
-- A condition says that keys of two sets are equal, but each is NULL in the other set.
SET enable_hashagg = off; SET enable_sort = off;
SELECT pg_temp.same_order('SELECT k, id, count(*), sum(id) FROM l WHERE k = id GROUP BY GROUPING SETS ((k), (id)) ORDER BY k NULLS FIRST, count(*) DESC, sum(id) DESC LIMIT 2', 'LanesAggregate');
RESET enable_hashagg; RESET enable_sort;
-- No row: the empty set has a group all the same.
SELECT pg_temp.same('SELECT k, s, count(*), sum(f), GROUPING(k) FROM l WHERE id < 0 GROUP BY ROLLUP (k, s)');
SELECT pg_temp.same('SELECT count(*) FROM l GROUP BY GROUPING SETS ((), ())');
SELECT pg_temp.same('SELECT count(*), GROUPING(k) FROM l GROUP BY GROUPING SETS ((k))');
-- Below another aggregation, in a sub-select that starts again, with workers.
SELECT pg_temp.same('SELECT n % 10, count(*) FROM (SELECT k, s, count(*) AS n FROM l GROUP BY CUBE (k, s)) q GROUP BY 1');
SELECT pg_temp.same('SELECT d.k, q.* FROM dim d, LATERAL (SELECT l.s, b, count(*), GROUPING(l.s) FROM l WHERE l.k = d.k GROUP BY ROLLUP (l.s, b)) q');
SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
SELECT pg_temp.same('SELECT k, s, count(*) FROM l GROUP BY ROLLUP (k, s)');
RESET min_parallel_table_scan_size; RESET parallel_setup_cost; RESET parallel_tuple_cost;
-- Rows of further groups wait in temporary files.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT pg_temp.same('SELECT id, k, count(*) FROM l GROUP BY ROLLUP (id, k)');
SET enable_hashagg = off; SET enable_sort = off;
SELECT count(*) > 0 AS waits FROM pg_temp.explained('SELECT id, id * 2, id * 3, count(*) FROM l GROUP BY ROLLUP (id, id * 2, id * 3)', 'Batches');
RESET work_mem; RESET hash_mem_multiplier; RESET enable_hashagg; RESET enable_sort;
-- Left to PostgreSQL.
SET enable_hashagg = off; SET enable_sort = off;
SELECT pg_temp.same('SELECT k x, k y, count(*) FROM l GROUP BY GROUPING SETS ((1), (2))');
SELECT pg_temp.same('SELECT coalesce(q.k, -1), q.k2, count(*) FROM (SELECT k, k AS k2 FROM l) q GROUP BY ROLLUP (k, k2)');
SELECT pg_temp.same('SELECT 1, k, count(*) FROM l GROUP BY ROLLUP (1, 2)');
RESET enable_hashagg; RESET enable_sort;
SELECT pg_temp.same('SELECT lower(s), count(*) FROM l GROUP BY ROLLUP (lower(s))');
SELECT pg_temp.same('SELECT k, max(s) FROM l GROUP BY ROLLUP (k)');
-- Over a join: transition states of each set, which PostgreSQL turns into results.
EXPLAIN (VERBOSE, COSTS OFF) SELECT d.name, s, GROUPING(s), count(*), avg(id) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (d.name, s) HAVING count(*) > 10;
SELECT pg_temp.same('SELECT d.name, count(*) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (d.name)');
SELECT pg_temp.same('SELECT d.name, s, GROUPING(d.name, s), count(*), sum(f), avg(id), max(ts), stddev(f), bool_or(b) FROM l JOIN dim d USING (k) GROUP BY CUBE (d.name, s)');
SELECT pg_temp.same('SELECT d.name, d.k, l.k, s, count(*), count(*) FILTER (WHERE b) FROM l LEFT JOIN dim d ON d.k = l.k + 5 WHERE id > 20 GROUP BY GROUPING SETS ((d.name, s), (d.k), (l.k, b), (), ())');
SELECT pg_temp.same('SELECT d.name, date_trunc(''hour'', ts), sum(f * 2) + 1, min(coalesce(f, 0)) FROM l JOIN dim d USING (k) WHERE d.name <> s GROUP BY ROLLUP (1, 2) HAVING sum(f) > 5 AND GROUPING(d.name) = 0');
SELECT pg_temp.same('SELECT d.name, e.name, count(*), sum(l.id) FROM l JOIN dim d USING (k) JOIN dim e ON e.k = l.id % 9 GROUP BY CUBE (d.name, e.name)');
SELECT pg_temp.same('SELECT d.name, s, count(*), sum(f), GROUPING(d.name) FROM l JOIN dim d USING (k) WHERE f > 100 OR s = ''none'' GROUP BY ROLLUP (d.name, s)');
SELECT pg_temp.same('SELECT coalesce(d.name, ''all''), rank() OVER (ORDER BY sum(f), d.name), sum(f) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (d.name) ORDER BY 3, 1 LIMIT 2');
SELECT pg_temp.same('SELECT k, count(*) FROM l WHERE EXISTS (SELECT FROM dim d WHERE d.k = l.k AND d.k > 1) GROUP BY ROLLUP (k)');
SELECT pg_temp.same('SELECT o, q.* FROM generate_series(1, 3) o, LATERAL (SELECT d.name, s, count(*) FROM l JOIN dim d USING (k) WHERE id < o * 500 GROUP BY ROLLUP (d.name, s)) q');
-- States of groups that exceed their memory are put aside.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET enable_sort = off;
SELECT pg_temp.same('SELECT id, d.name, GROUPING(d.name), count(*), sum(f) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (id, d.name)');
SELECT count(*) > 0 AS are_put_aside FROM pg_temp.explained('SELECT id, d.name, GROUPING(d.name), count(*), sum(f) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (id, d.name)', 'Groups Put Aside');
RESET work_mem; RESET hash_mem_multiplier; RESET enable_sort;
-- Left to PostgreSQL: small rows without a match, and aggregates that keep values.
-- A sample of the small side is drawn once for all sets.
SELECT coalesce(sum(rows) FILTER (WHERE is_total), 0) = coalesce(sum(rows) FILTER (WHERE NOT is_total), 0) AS is_one_sample
  FROM (SELECT GROUPING(d.name) = 1 AS is_total, count(*) AS rows FROM l JOIN dim d TABLESAMPLE BERNOULLI (50) USING (k) GROUP BY ROLLUP (d.name)) q;
SELECT pg_temp.same('SELECT d.name, s, count(*) FROM l RIGHT JOIN dim d USING (k) GROUP BY ROLLUP (d.name, s)');
SELECT pg_temp.same('SELECT d.name, count(DISTINCT s) FROM l JOIN dim d USING (k) GROUP BY ROLLUP (d.name)');
SELECT pg_temp.same('SELECT d.name, s, count(*) FROM l JOIN (SELECT k, max(name) AS name FROM dim GROUP BY k) d USING (k) GROUP BY ROLLUP (d.name, s)');
PREPARE p(int) AS SELECT k, s, count(*) FROM l WHERE id > $1 GROUP BY ROLLUP (k, s) ORDER BY 1, 2, 3 LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(1000);
EXECUTE p(2500);
DROP TABLE l, h, dim;

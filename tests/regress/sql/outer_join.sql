-- Hash joins with the lanes table on the null side: RIGHT and FULL joins, compared with
-- PostgreSQL's own and with heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA outer_join; SET search_path = outer_join;
CREATE TABLE reading (ts timestamptz, series int, host text, wide int8, value float8, ok bool) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 s', s, 'h' || s % 90, s * 1000000000::int8,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (s * i) % 97 END, i % 3 = 0
    FROM generate_series(1, 120) s, generate_series(1, 200) i;
SELECT lanes.seal('reading');
-- Open rows, NULL keys and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts + interval '1 hour', CASE WHEN series % 5 = 0 THEN NULL ELSE series END, CASE WHEN series % 7 = 0 THEN NULL ELSE host END, NULL, value, NULL
    FROM reading WHERE series <= 20;
DELETE FROM reading WHERE series % 13 = 0;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
-- Rows without a match, NULL keys, duplicates.
CREATE TABLE dim (id int, host text, region text, factor float8, wide int8) USING heap;
INSERT INTO dim SELECT i, 'h' || i, (ARRAY['eu', 'us', NULL, 'ap'])[i % 4 + 1], i / 8.0, i * 1000000000::int8 FROM generate_series(-20, 150) i;
INSERT INTO dim VALUES (NULL, NULL, 'none', 1, NULL), (NULL, 'h3', 'none', NULL, 5), (7, 'h7', 'again', 2, 7000000000), (500, NULL, NULL, NULL, NULL);
CREATE TABLE crowd (id int, payload text) USING heap;
INSERT INTO crowd SELECT i % 700, repeat('x', 40) || i FROM generate_series(1, 4000) i;
CREATE TABLE empty (id int, region text) USING heap;
CREATE TABLE nothing (ts timestamptz, series int, host text, wide int8, value float8, ok bool);
CREATE TABLE nothing_heap (LIKE nothing) USING heap;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading|nothing';

EXPLAIN (COSTS OFF) SELECT d.region, count(r.value) FROM dim d LEFT JOIN reading r ON r.series = d.id GROUP BY d.region;
EXPLAIN (COSTS OFF) SELECT d.region, r.value FROM dim d LEFT JOIN reading r ON r.series = d.id;

-- Rows.
SELECT pg_temp.same('SELECT d.id, d.region, r.ts, r.value, r.host, r.ok FROM dim d LEFT JOIN reading r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.ts, r.value FROM reading r RIGHT JOIN dim d ON r.series = d.id AND r.value > 50 AND r.ts < ''2024-01-01 00:20''');
SELECT pg_temp.same('SELECT d.id, d.host, r.series FROM dim d LEFT JOIN reading r ON r.host = d.host');
SELECT pg_temp.same('SELECT d.id, r.series FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.host = d.host');
SELECT pg_temp.same('SELECT d.id, r.series FROM dim d LEFT JOIN reading r ON r.wide = d.wide AND r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.series, r.value FROM dim d FULL JOIN reading r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d LEFT JOIN nothing r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d FULL JOIN nothing r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.value FROM empty d LEFT JOIN reading r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.value FROM empty d FULL JOIN reading r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.id, r.value FROM (SELECT * FROM dim WHERE id IS NULL) d LEFT JOIN reading r ON r.series = d.id');
-- Conditions above the join, and on the preserved side.
SELECT pg_temp.same('SELECT d.id FROM dim d LEFT JOIN reading r ON r.series = d.id WHERE r.series IS NULL');
-- PostgreSQL makes an anti join of these. Its rows have the small side's columns, all NULL.
SELECT pg_temp.same('SELECT d.region, count(*), count(d.wide), sum(d.id) FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL GROUP BY d.region');
SELECT pg_temp.same('SELECT count(d.id), sum(d.id), max(d.factor), count(*) FILTER (WHERE d.id IS NULL) FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL');
SELECT pg_temp.same('SELECT r.series % 3, coalesce(d.region, ''none''), sum(r.wide + d.id), sum(r.series + coalesce(d.id, 1)) FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL GROUP BY 1, 2');
SELECT pg_temp.same('SELECT DISTINCT d.region, d.wide FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL');
SELECT pg_temp.same('SELECT r.series, d.region, d.id FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL');
SELECT pg_temp.same('SELECT e.ok, count(*) FROM reading r LEFT JOIN reading e ON e.series = r.series AND e.series < 20 WHERE e.series IS NULL GROUP BY e.ok');
SELECT pg_temp.same('SELECT d.region, m.region, count(*), sum(m.id) FROM reading r JOIN dim m ON m.host = r.host LEFT JOIN dim d ON d.id = r.series WHERE d.id IS NULL GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d LEFT JOIN reading r ON r.series = d.id WHERE d.region = ''eu''');
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d LEFT JOIN reading r ON r.series = d.id AND d.region = ''eu''');
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d LEFT JOIN reading r ON r.series = d.id WHERE coalesce(r.value, 0) = 0');
-- Aggregates: of NULL rows only, of both sides, with keys of either side and of both.
SELECT pg_temp.same('SELECT d.region, count(*), count(r.series), sum(r.value), min(r.ts), max(r.wide), bool_or(r.ok) FROM dim d LEFT JOIN reading r ON r.series = d.id GROUP BY d.region');
SELECT pg_temp.same('SELECT d.id, count(*), count(r.ok), avg(r.value) FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.ts < ''2024-01-01 00:10'' GROUP BY d.id');
SELECT pg_temp.same('SELECT r.series, count(*), sum(d.factor) FROM dim d LEFT JOIN reading r ON r.series = d.id GROUP BY r.series');
SELECT pg_temp.same('SELECT r.host, count(*), max(d.id) FROM dim d LEFT JOIN reading r ON r.host = d.host GROUP BY r.host');
SELECT pg_temp.same('SELECT date_trunc(''hour'', r.ts) AS hour, d.region, count(*), count(r.value) FROM dim d LEFT JOIN reading r ON r.series = d.id GROUP BY 1, 2');
SELECT pg_temp.same('SELECT count(*), count(r.series), count(d.id), sum(r.wide) FROM dim d FULL JOIN reading r ON r.series = d.id');
SELECT pg_temp.same('SELECT d.region, r.ok, count(*) FROM dim d FULL JOIN reading r ON r.series = d.id GROUP BY 1, 2');
SELECT pg_temp.same('SELECT r.value + d.factor AS s, count(*) FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.value = 5 GROUP BY 1');
SELECT pg_temp.same('SELECT d.region, count(*) FILTER (WHERE r.value > 10), count(*) FILTER (WHERE r.value IS NULL) FROM dim d LEFT JOIN reading r ON r.series = d.id GROUP BY 1');
SELECT pg_temp.same('SELECT d.region, sum(coalesce(r.value, 1)) FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.value < 3 GROUP BY 1');
SELECT pg_temp.same('SELECT count(*), count(r.value) FROM dim d LEFT JOIN nothing r ON r.series = d.id');
SELECT pg_temp.same('SELECT DISTINCT ON (d.id) d.id, r.ts, r.value FROM dim d LEFT JOIN reading r ON r.series = d.id ORDER BY d.id, r.ts DESC, r.value');
SELECT pg_temp.same('SELECT DISTINCT d.region, r.host FROM dim d LEFT JOIN reading r ON r.series = d.id');
-- Outer joins below and above others.
SELECT pg_temp.same('SELECT d.id, r.value, c.part FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.value > 90 LEFT JOIN (SELECT id AS part FROM empty) c ON c.part = r.series');
SELECT pg_temp.same('SELECT e.region, count(r.value) FROM (dim d LEFT JOIN empty e ON e.id = d.id) LEFT JOIN reading r ON r.series = d.id GROUP BY 1');
SELECT pg_temp.same('SELECT d.id, x.n FROM dim d LEFT JOIN LATERAL (SELECT count(r.value) AS n FROM (VALUES (d.id), (NULL)) v(id) LEFT JOIN reading r ON r.series = v.id) x ON true WHERE d.id BETWEEN 1 AND 15');
SELECT pg_temp.same('SELECT a.series, count(b.series) FROM (SELECT DISTINCT series FROM reading) a LEFT JOIN reading b ON b.series = a.series GROUP BY 1');

-- A RIGHT join divides its small side if it exceeds its memory. A FULL join hands over to
-- PostgreSQL's own plan.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT pg_temp.same('SELECT c.id, count(*), count(r.value), sum(r.value) FROM crowd c LEFT JOIN reading r ON r.series = c.id AND r.ts < ''2024-01-01 00:05'' GROUP BY c.id');
SELECT pg_temp.same('SELECT c.payload, r.ts, r.value FROM crowd c LEFT JOIN reading r ON r.series = c.id AND r.ts < ''2024-01-01 00:01''');
CREATE FUNCTION pg_temp.batches(query text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN (plan #>> '{Plan,Batches}')::int > 1 THEN 'several batches' ELSE plan::text END FROM pg_temp.analyzed(query) plan $$;
SELECT pg_temp.batches('SELECT c.payload, r.ts, r.value FROM crowd c LEFT JOIN reading r ON r.series = c.id AND r.ts < ''2024-01-01 00:01''');
SELECT pg_temp.same('SELECT count(*), count(r.value), count(c.payload) FROM crowd c FULL JOIN reading r ON r.series = c.id');
RESET work_mem; RESET hash_mem_multiplier;

-- Cursors and reused plans.
BEGIN;
DECLARE rows CURSOR FOR SELECT d.id, r.series FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.ts = '2024-01-01 00:00:10' WHERE d.id IN (-1, 1, 2, 149);
FETCH 2 FROM rows; FETCH ALL FROM rows;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE counted(int) AS SELECT d.id, count(r.value) FROM dim d LEFT JOIN reading r ON r.series = d.id AND r.value > $1 WHERE d.id BETWEEN 118 AND 122 GROUP BY 1 ORDER BY 1;
EXECUTE counted(50); EXECUTE counted(NULL); EXECUTE counted(1000);
SET client_min_messages = warning;
DROP SCHEMA outer_join CASCADE;

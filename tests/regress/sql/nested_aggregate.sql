-- Nested aggregation: the aggregation of a sub-select that aggregates, without passing rows from
-- node to node.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA nested_aggregate; SET search_path = nested_aggregate;
CREATE TABLE reading (ts timestamptz, series int, host text, kind int2, ok bool, device uuid, price numeric, value float8) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 s', s, 'h' || s % 7, s % 3, s % 4 = 0, md5((s % 9)::text)::uuid, i % 5, CASE WHEN i % 171 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (s * i) % 97 END
    FROM generate_series(1, 40) s, generate_series(1, 360) i;
SELECT lanes.seal('reading');
-- Open rows, NULLs in keys and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts + interval '30 s', NULLIF(series, 3), CASE WHEN series % 5 <> 0 THEN host END, NULLIF(kind, 2), CASE WHEN series <> 4 THEN ok END, CASE WHEN series <> 5 THEN device END, price, CASE WHEN series = 2 THEN -0.0 ELSE value END
    FROM reading WHERE series <= 8;
DELETE FROM reading WHERE series % 13 = 0;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE label (id int, labels jsonb) USING heap;
INSERT INTO label SELECT i, jsonb_build_object('mode', (ARRAY['idle', 'user', 'system'])[i % 3 + 1], 'cpu', i % 4) || CASE WHEN i % 6 = 0 THEN '{}' ELSE jsonb_build_object('zone', 'z' || i % 5) END FROM generate_series(1, 36) i;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading|sample';

EXPLAIN (COSTS OFF) SELECT minute, mode, sum(increase) FROM (SELECT floor(extract(epoch FROM ts) / 60) * 60 AS minute, series, l.labels->>'mode' AS mode, max(value) - min(value) AS increase
    FROM reading r JOIN label l ON l.id = r.series GROUP BY 1, 2, 3) s GROUP BY 1, 2;
EXPLAIN (COSTS OFF) SELECT minute, count(*) FROM (SELECT lanes.time_bucket('5 min', ts) AS minute, series, max(value) AS top FROM reading GROUP BY 1, 2 HAVING count(*) > 3) s WHERE top > 50 GROUP BY 1 HAVING count(*) > 5;
-- Rows of the lower nodes are counted although they are never returned as rows.
CREATE FUNCTION pg_temp.actual(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.explained(query, 'actual|Removed|Handed') $$;
SELECT pg_temp.actual('SELECT minute, count(*) FROM (SELECT lanes.time_bucket(''5 min'', ts) AS minute, series, max(value) AS top FROM reading GROUP BY 1, 2) s WHERE top > 90 GROUP BY 1');

-- The time of a node is measured once, whether or not a scan of the sub-select stands above it.
DO $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE) SELECT host, sum(n) FROM (SELECT host, count(*) AS n FROM reading GROUP BY 1) s GROUP BY 1' LOOP END LOOP;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE) SELECT n, count(*) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1' LOOP END LOOP;
END $$;
-- Keys of all types, including NULL.
SELECT pg_temp.same('SELECT minute, sum(v), count(*) FROM (SELECT floor(extract(epoch FROM ts) / 300) * 300 AS minute, series, max(value) - min(value) AS v FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT minute, host, sum(v), min(v), max(v), avg(n), count(v) FROM (SELECT lanes.time_bucket(''5 min'', ts) AS minute, host, series, max(value) AS v, count(*) AS n FROM reading GROUP BY 1, 2, 3) s GROUP BY 1, 2');
SELECT pg_temp.same('SELECT kind, ok, count(*), sum(n) FROM (SELECT kind, ok, series, count(value) AS n FROM reading GROUP BY 1, 2, 3) s GROUP BY 1, 2');
SELECT pg_temp.same('SELECT device, sum(n) FROM (SELECT device, host, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT value, count(*), min(n) FROM (SELECT value, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT day, count(*) FROM (SELECT date_trunc(''hour'', ts) AS day, series, min(ts) AS first FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT labels, sum(n) FROM (SELECT l.labels, r.host, count(*) AS n FROM reading r JOIN label l ON l.id = r.series GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT zone, mode, sum(n), avg(v) FROM (SELECT l.labels->>''zone'' AS zone, l.labels->>''mode'' AS mode, series, count(*) AS n, min(value) AS v FROM reading r LEFT JOIN label l ON l.id = r.series GROUP BY 1, 2, 3) s GROUP BY 1, 2');
-- Keys that are expressions over the sub-select's keys and results.
SELECT pg_temp.same('SELECT series % 4, sum(n) FROM (SELECT series, host, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT n, count(*) FROM (SELECT series, minute, count(*) AS n FROM (SELECT series, lanes.time_bucket(''1 min'', ts) AS minute FROM reading) r GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT date_trunc(''hour'', minute), max(v) FROM (SELECT lanes.time_bucket(''1 min'', ts) AS minute, max(value) AS v FROM reading GROUP BY 1) s GROUP BY 1');
SELECT pg_temp.same('SELECT ok IS NULL, n > 300, count(*) FROM (SELECT ok, host, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1, 2');
SELECT pg_temp.same('SELECT top, count(*) FROM (SELECT series, max(value) AS top FROM reading GROUP BY 1) s GROUP BY 1');
-- A constant among the columns of DISTINCT is no column of the groups below.
SELECT pg_temp.same('SELECT place, count(*) FROM (SELECT DISTINCT host, 42 AS place FROM reading) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, sum(place), max(place + series) FROM (SELECT DISTINCT host, series, 42 AS place FROM reading) s GROUP BY 1');
-- Filters on keys and results, arithmetic on both levels, several aggregates of one result.
SELECT pg_temp.same('SELECT minute, 1 - sum(v) FILTER (WHERE mode = ''idle'') / sum(v) FROM (SELECT lanes.time_bucket(''10 min'', ts) AS minute, series, l.labels->>''mode'' AS mode, max(value) - min(value) + 1 AS v FROM reading r JOIN label l ON l.id = r.series WHERE value >= 0 AND value <> ''NaN'' GROUP BY 1, 2, 3) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, count(*) FILTER (WHERE v > 90 OR kind IS NULL), sum(v * 2 - kind) FILTER (WHERE host LIKE ''h%'' AND host <> ''h2'') FROM (SELECT host, kind, series, max(value) AS v FROM reading WHERE value <> ''NaN'' GROUP BY 1, 2, 3) s GROUP BY 1');
SELECT pg_temp.same('SELECT count(host), count(kind), count(v), count(ok), bool_and(ok), bool_or(alright), count(*) FROM (SELECT host, kind, ok, min(value) AS v, bool_and(ok) AS alright FROM reading GROUP BY 1, 2, 3) s');
SELECT pg_temp.same('SELECT kind, stddev(d), max(a) FROM (SELECT kind, series, avg(value) AS a, stddev(value) AS d FROM reading WHERE value <> ''NaN'' AND series < 3 GROUP BY 1, 2) s GROUP BY 1');
-- HAVING on both levels, also if it removes all groups.
SELECT pg_temp.same('SELECT host, sum(n) FROM (SELECT host, series, count(*) AS n, max(value) AS top FROM reading GROUP BY 1, 2 HAVING max(value) > 90 AND host IS NOT NULL) s WHERE n > 10 GROUP BY 1 HAVING sum(n) > 1000');
SELECT pg_temp.same('SELECT host, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2 HAVING count(*) < 0) s GROUP BY 1');
SELECT pg_temp.same('SELECT sum(n), count(*), max(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2 HAVING count(*) < 0) s');
SELECT pg_temp.same('SELECT sum(n), count(*) FROM (SELECT count(*) AS n FROM reading) s');
SELECT pg_temp.same('SELECT host, count(*) FROM (SELECT host, series FROM reading WHERE series < 0 GROUP BY 1, 2) s GROUP BY 1');
-- Errors are those of the expressions, and only occur for groups that pass HAVING.
SELECT pg_temp.same('SELECT host, sum(1000 / (n - 360)) FROM (SELECT host, series, count(*)::int AS n FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, sum(1000 / (n - 360)) FROM (SELECT host, series, count(*)::int AS n FROM reading GROUP BY 1, 2 HAVING count(*) <> 360) s GROUP BY 1');
SELECT pg_temp.same('SELECT sum(v) FROM (SELECT series, max(value) * 1e308 AS v FROM reading GROUP BY 1) s');
-- Three levels; DISTINCT in the sub-select; a common table expression.
SELECT pg_temp.same('SELECT host, max(t) FROM (SELECT host, minute, sum(v) AS t FROM (SELECT host, lanes.time_bucket(''10 min'', ts) AS minute, series, count(value) AS v FROM reading GROUP BY 1, 2, 3) a GROUP BY 1, 2) b GROUP BY 1');
SELECT pg_temp.same('SELECT host, count(*) FROM (SELECT DISTINCT host, series FROM reading) s GROUP BY 1');
SELECT pg_temp.same('WITH s AS (SELECT host, series, max(value) AS top FROM reading GROUP BY 1, 2) SELECT host, sum(top) FROM s GROUP BY 1');
SELECT pg_temp.same('SELECT s.host, l.labels, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2) s JOIN label l ON l.id = s.series GROUP BY 1, 2');
-- PostgreSQL's own aggregation: types that no lane has, volatile or ordered sub-selects, LIMIT, set
-- operations, grouping sets, whole rows.
SELECT pg_temp.same('SELECT host, sum(p) FROM (SELECT host, series, sum(price) AS p FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, count(a) FROM (SELECT host, kind, avg(series) AS a FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, sum(v) > 0 FROM (SELECT host, series, max(value) + random() AS v FROM reading WHERE value <> ''NaN'' GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, count(*) FROM (SELECT host, series, count(*) FROM reading GROUP BY 1, 2 ORDER BY 2, 1 LIMIT 5) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, count(*) FROM (SELECT host, series, generate_series(1, 2) FROM reading GROUP BY 1, 2) s GROUP BY 1');
SELECT pg_temp.same('SELECT host, kind, sum(n) FROM (SELECT host, kind, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY ROLLUP (1, 2)');
SELECT pg_temp.same('SELECT count(s) FROM (SELECT host, kind, count(*) AS n FROM reading GROUP BY 1, 2) s');
SELECT pg_temp.same('SELECT count(DISTINCT host) FROM (SELECT host, kind, count(*) AS n FROM reading GROUP BY 1, 2) s');

-- Parameters and rescans: each rescan has its own groups.
SELECT pg_temp.same('SELECT k, x.* FROM generate_series(0, 2) k CROSS JOIN LATERAL (SELECT host, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading WHERE kind = k GROUP BY 1, 2) s GROUP BY 1) x');
SELECT pg_temp.same('SELECT k, (SELECT max(n) FROM (SELECT host, count(*) AS n FROM reading WHERE series > k * 10 GROUP BY 1 HAVING count(*) > k) s) FROM generate_series(0, 4) k');
PREPARE by_kind(int) AS SELECT host, sum(n + $1) FROM (SELECT host, series, count(*) AS n FROM reading WHERE kind = $1 GROUP BY 1, 2) s GROUP BY 1 ORDER BY 1 LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_kind(0); EXECUTE by_kind(1); EXECUTE by_kind(NULL);
EXPLAIN (COSTS OFF) EXECUTE by_kind(1);
RESET plan_cache_mode;
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT host, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1;
FETCH ALL FROM back; FETCH BACKWARD 2 FROM back; FETCH ABSOLUTE 1 FROM back;
COMMIT;

-- Groups that exceed their memory, on either level, are handed over to PostgreSQL's own plan.
CREATE TABLE wide (a int, b int, v int);
INSERT INTO wide SELECT i, i / 2, i % 10 FROM generate_series(1, 120000) i;
CREATE TABLE wide_heap USING heap AS SELECT * FROM wide;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT count(*) AS handed_over FROM pg_temp.actual('SELECT b, sum(n) AS n FROM (SELECT a, b, count(*) AS n FROM wide GROUP BY 1, 2) s GROUP BY 1') line WHERE line ~ 'Handed Over';
SELECT line FROM pg_temp.actual('SELECT a + 0, sum(n), avg(n), stddev(c), stddev(b), variance(c), avg(c), avg(b), sum(c), sum(b), max(b) FROM (SELECT a, count(*)::int AS n, max(b) AS b, avg(a::float8) AS c FROM wide WHERE a <= 5000 GROUP BY 1) s GROUP BY 1') line WHERE line ~ 'Lanes|Handed Over';
SELECT count(*), sum(n) FROM (SELECT a + 0, sum(n) AS n, avg(n), stddev(c), stddev(b), variance(c), avg(c), avg(b), sum(c), sum(b), max(b) FROM (SELECT a, count(*)::int AS n, max(b) AS b, avg(a::float8) AS c FROM wide WHERE a <= 5000 GROUP BY 1) s GROUP BY 1) t;
SELECT count(*), sum(n) FROM (SELECT b, sum(n) AS n FROM (SELECT a, b, count(*) AS n FROM wide GROUP BY 1, 2) s GROUP BY 1) t;
RESET work_mem; RESET hash_mem_multiplier;
SELECT count(*), sum(n) FROM (SELECT b, sum(n) AS n FROM (SELECT a, b, count(*) AS n FROM wide GROUP BY 1, 2) s GROUP BY 1) t;

-- Privileges, row-level security and security barriers apply.
CREATE ROLE nested_reader; GRANT USAGE ON SCHEMA nested_aggregate TO nested_reader; GRANT SELECT (host, series) ON reading TO nested_reader;
CREATE VIEW barrier WITH (security_barrier) AS SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2;
GRANT SELECT ON barrier TO nested_reader;
CREATE FUNCTION leak(text) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'seen: %', $1; RETURN true; END $$;
SET ROLE nested_reader;
SELECT sum(n) FROM (SELECT host, series, count(*) AS n FROM nested_aggregate.reading GROUP BY 1, 2) s;
SELECT sum(n) FROM (SELECT host, series, max(value) AS n FROM nested_aggregate.reading GROUP BY 1, 2) s;
SELECT count(*) FROM (SELECT host, sum(n) FROM nested_aggregate.barrier WHERE nested_aggregate.leak(host) AND series = 2 GROUP BY 1) s;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION pg_catalog.max(int8) FROM PUBLIC;
GRANT SELECT ON reading TO nested_reader;
SET ROLE nested_reader;
SELECT max(n) FROM (SELECT host, series, count(*) AS n FROM nested_aggregate.reading GROUP BY 1, 2) s;
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_catalog.max(int8) TO PUBLIC;
ALTER TABLE reading ENABLE ROW LEVEL SECURITY;
CREATE POLICY odd ON reading USING (series % 2 = 1);
SET ROLE nested_reader;
SELECT sum(n) = (SELECT count(*) FROM nested_aggregate.reading) AS same, sum(n) > 0 AS any FROM (SELECT host, series, count(*) AS n FROM nested_aggregate.reading GROUP BY 1, 2) s;
RESET ROLE;

-- `require` accepts it.
SET lanes.vectorize = require;
SELECT host, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1 ORDER BY 1 LIMIT 1;
-- Minutes of a few rows each. The series of a machine have equal times, those of different machines
-- differ, and some start late or have gaps.
CREATE TABLE sample (series int, ts timestamptz, value float8, real_value real, counter bigint) WITH (order_by = 'series, ts');
INSERT INTO sample SELECT s, timestamptz '2024-01-01' + i * interval '10 s' + (s / 8) * interval '3 s', (s * i) % 97 - 40, (s + i) % 31, s * 1000 + i
    FROM generate_series(1, 32) s, generate_series(1, 720) i WHERE (i > s * 5 OR s % 8 < 6) AND (s / 8 <> 2 OR i % 97 > 2);
SELECT lanes.seal('sample');
CREATE TABLE sample_heap USING heap AS SELECT * FROM sample;
ANALYZE sample;
CREATE TEMP TABLE by_minute (query text) USING heap;
INSERT INTO by_minute SELECT replace(query, 'MINUTE', minute) FROM unnest(ARRAY[
    'SELECT MINUTE AS m, count(*), sum(value), avg(value), min(value), max(value), sum(real_value), avg(real_value), sum(counter) FROM sample GROUP BY 1',
    'SELECT MINUTE AS m, series, count(value), sum(value), avg(value), min(value), max(value), min(real_value), max(counter), sum(counter) FILTER (WHERE value > 0) FROM sample GROUP BY 1, 2',
    'SELECT m, mode, sum(v), count(*), min(r), max(c) FROM (SELECT MINUTE AS m, series, l.labels->>''mode'' AS mode, max(value) - min(value) AS v, max(real_value) AS r, sum(counter) AS c FROM sample s JOIN label l ON l.id = s.series GROUP BY 1, 2, 3) x GROUP BY 1, 2',
    'SELECT m, zone, avg(n), sum(v) FROM (SELECT MINUTE AS m, series, l.labels->>''zone'' AS zone, count(*) AS n, sum(value) AS v FROM sample s LEFT JOIN label l ON l.id = s.series AND l.id < 20 GROUP BY 1, 2, 3) x GROUP BY 1, 2',
    'SELECT MINUTE AS m, l.labels->>''cpu'' AS cpu, avg(value) FROM sample s JOIN label l ON l.id = s.series WHERE value <> ''NaN'' OR series / 0 < 3 GROUP BY 1, 2'
    ]) WITH ORDINALITY AS q (query, place), unnest(ARRAY['floor(extract(epoch FROM ts) / 60) * 60', 'date_trunc(''minute'', ts)', 'lanes.time_bucket(''40 s'', ts)', 'lanes.time_bucket(''15 s'', ts)']) WITH ORDINALITY AS m (minute, width) ORDER BY place, width;
SELECT pg_temp.same(query) FROM by_minute;
-- Minutes in which some rows do not count, and some values are NULL, NaN or zeros of either sign.
DELETE FROM sample WHERE series = 5 AND counter % 3 = 0;
DELETE FROM sample_heap WHERE series = 5 AND counter % 3 = 0;
SELECT pg_temp.same(query) FROM by_minute;
UPDATE sample SET value = CASE WHEN series = 7 THEN NULL WHEN series = 9 THEN -0.0 WHEN value > 50 THEN 'NaN' ELSE 0 END WHERE counter % 5 = 0;
UPDATE sample_heap SET value = CASE WHEN series = 7 THEN NULL WHEN series = 9 THEN -0.0 WHEN value > 50 THEN 'NaN' ELSE 0 END WHERE counter % 5 = 0;
SELECT lanes.seal('sample');
SELECT pg_temp.same(query) FROM by_minute;
RESET lanes.vectorize;
SET client_min_messages = warning;
DROP OWNED BY nested_reader; DROP ROLE nested_reader;
DROP SCHEMA nested_aggregate CASCADE;

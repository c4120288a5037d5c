-- Vectorised percentile_cont and percentile_disc of numbers, compared with PostgreSQL's own over
-- lanes and over heap.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA percentile; SET search_path = percentile;
CREATE TABLE reading (ts timestamptz, series int, host text, i2 int2, i4 int, i8 bigint, f4 float4, f8 float8, price numeric) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '1 min', s, 'h' || s % 3, (s * i) % 50, CASE WHEN i % 7 <> 0 THEN (s * i * 7919) % 1000 - 500 END, i * 10000000000, (s * i) % 33 / 4.0,
        CASE WHEN i % 50 = 0 THEN float8 'NaN' WHEN i % 51 = 0 THEN float8 '-Infinity' WHEN i % 9 = 0 THEN NULL ELSE (s * i * 31) % 77 / 8.0 END, i
    FROM generate_series(1, 9) s, generate_series(1, 300) i;
SELECT lanes.seal('reading');
INSERT INTO reading SELECT ts, series, NULL, i2, NULL, i8, f4, NULL, price FROM reading WHERE series = 2 AND i2 < 10;
DELETE FROM reading WHERE i2 = 4;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE device (id int, region text) USING heap;
INSERT INTO device SELECT i, (ARRAY['eu', 'us'])[i % 2 + 1] FROM generate_series(1, 7) i;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading';
SET regress.answer_letters = 90;

SELECT pg_temp.same(format('SELECT percentile_cont(%s) WITHIN GROUP (ORDER BY f8%s), percentile_disc(%1$s) WITHIN GROUP (ORDER BY f8%2$s) FROM reading', p, d))
    FROM unnest(ARRAY['0', '0.001', '0.5', '0.95', '0.9999', '1', 'NULL']) p, unnest(ARRAY['', ' DESC']) d;
SELECT pg_temp.same('SELECT host, percentile_cont(0.9) WITHIN GROUP (ORDER BY i4), percentile_disc(0.9) WITHIN GROUP (ORDER BY i4), count(*) FROM reading GROUP BY 1');
SELECT pg_temp.same('SELECT series, percentile_disc(0.3) WITHIN GROUP (ORDER BY i2), percentile_disc(0.3) WITHIN GROUP (ORDER BY i8 DESC), percentile_disc(0.3) WITHIN GROUP (ORDER BY f4), percentile_disc(0.3) WITHIN GROUP (ORDER BY ts) FROM reading GROUP BY 1');
SELECT pg_temp.same('SELECT lanes.time_bucket(''1 hour'', ts), host, percentile_cont(0.25) WITHIN GROUP (ORDER BY f8 * 2 + i4) FILTER (WHERE i2 > 3) FROM reading GROUP BY 1, 2 HAVING count(*) > 5');
SELECT pg_temp.same('SELECT region, percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM reading r JOIN device d ON d.id = r.series GROUP BY 1');
SELECT pg_temp.same('SELECT hour, percentile_cont(0.95) WITHIN GROUP (ORDER BY latest) FROM (SELECT date_trunc(''hour'', ts) AS hour, series, lanes.last(f8, ts) AS latest FROM reading GROUP BY 1, 2) s GROUP BY 1');
-- No values, and groups without a number.
SELECT pg_temp.same('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f8) FROM reading WHERE series < 0');
SELECT pg_temp.same('SELECT host, percentile_disc(0.5) WITHIN GROUP (ORDER BY f8) FROM reading WHERE host IS NULL OR series = 1 GROUP BY 1');
-- Several fractions. Those of another form than a list are PostgreSQL's own.
SELECT pg_temp.same('SELECT percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY f8) FROM reading');
SELECT pg_temp.same('SELECT series, percentile_cont(ARRAY[1, NULL, 0.25, 0.25]) WITHIN GROUP (ORDER BY f8 DESC), percentile_cont(ARRAY[0.5]) WITHIN GROUP (ORDER BY i4) FILTER (WHERE i4 > 5) FROM reading GROUP BY series');
SELECT pg_temp.same('SELECT percentile_cont(ARRAY[[0.1, 0.9]]) WITHIN GROUP (ORDER BY f8), percentile_cont(''[0:1]={0.1,0.2}''::float8[]) WITHIN GROUP (ORDER BY f8) FROM reading');
SELECT pg_temp.same('SELECT percentile_cont(''{}''::float8[]) WITHIN GROUP (ORDER BY f8), percentile_cont(NULL::float8[]) WITHIN GROUP (ORDER BY f8) FROM reading');
SELECT pg_temp.same('SELECT percentile_cont(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY f8) FROM reading WHERE false');
SELECT percentile_disc(ARRAY[0, 0.5, NULL, 1]) WITHIN GROUP (ORDER BY i2) FROM reading;
SELECT pg_temp.same('SELECT series, percentile_disc(ARRAY[1, NULL, 0.25, 0.25]) WITHIN GROUP (ORDER BY f8 DESC), percentile_disc(ARRAY[0.5, 0.1]) WITHIN GROUP (ORDER BY i4) FILTER (WHERE i4 > 5), percentile_disc(ARRAY[0.9]) WITHIN GROUP (ORDER BY i2), percentile_disc(ARRAY[0.9]) WITHIN GROUP (ORDER BY f4) FROM reading GROUP BY series');
SELECT pg_temp.same('SELECT percentile_disc(ARRAY[0.2, 0.8]) WITHIN GROUP (ORDER BY ts), percentile_disc(ARRAY[0.2]) WITHIN GROUP (ORDER BY ts::date), percentile_disc(ARRAY[0.2]) WITHIN GROUP (ORDER BY i8) FROM reading');
SELECT pg_temp.same('SELECT percentile_disc(ARRAY[[0.1, 0.9]]) WITHIN GROUP (ORDER BY f8), percentile_disc(''{}''::float8[]) WITHIN GROUP (ORDER BY i4) FROM reading');
SELECT pg_temp.same('SELECT percentile_disc(ARRAY[0.5]) WITHIN GROUP (ORDER BY i4), percentile_disc(NULL::float8[]) WITHIN GROUP (ORDER BY i4) FROM reading WHERE series < 0');
SELECT pg_temp.same('SELECT percentile_disc(ARRAY[0.5, 2]) WITHIN GROUP (ORDER BY i4) FROM reading');
SELECT pg_temp.same('SELECT avg(p[1]), max(p[2]) FROM (SELECT series, percentile_cont(ARRAY[0.5, 0.9]) WITHIN GROUP (ORDER BY f8) AS p FROM reading GROUP BY series) x');
-- PostgreSQL's own: fractions that are out of range or vary by row, intervals, texts,
-- numerics, mode and hypothetical-set aggregates.
SELECT pg_temp.same('SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY f8) FROM reading');
SELECT pg_temp.same('SELECT percentile_cont(-0.1) WITHIN GROUP (ORDER BY f8) FROM reading WHERE series < 0');
SELECT pg_temp.same('SELECT series, percentile_cont(series / 10.0) WITHIN GROUP (ORDER BY f8) FROM reading GROUP BY 1');
SELECT pg_temp.same('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ts - timestamptz ''2024-01-01'') FROM reading');
SELECT pg_temp.same('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY host COLLATE "C"), percentile_disc(0.5) WITHIN GROUP (ORDER BY price) FROM reading');
SELECT pg_temp.same('SELECT mode() WITHIN GROUP (ORDER BY i2), mode() WITHIN GROUP (ORDER BY i4 DESC), mode() WITHIN GROUP (ORDER BY i8) FILTER (WHERE i2 > 3) FROM reading');
SELECT pg_temp.same('SELECT series, mode() WITHIN GROUP (ORDER BY i2), mode() WITHIN GROUP (ORDER BY ts) FROM reading GROUP BY 1');
SELECT pg_temp.same('SELECT mode() WITHIN GROUP (ORDER BY i2), rank(3) WITHIN GROUP (ORDER BY i4) FROM reading');
PREPARE at(float8) AS SELECT percentile_cont($1) WITHIN GROUP (ORDER BY i8) FROM reading;
SET plan_cache_mode = force_generic_plan;
EXECUTE at(0.5); EXECUTE at(NULL); EXECUTE at(2);
RESET plan_cache_mode;
-- Numbers that exceed their memory are left to PostgreSQL's own plan, which sorts on disk.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE TABLE many (k int, v float8);
INSERT INTO many SELECT i % 3, (i * 7919::bigint) % 100003 FROM generate_series(1, 200000) i;
CREATE FUNCTION pg_temp.handed(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(line) FROM pg_temp.explained(query, 'Handed') line $$;
SELECT pg_temp.handed('SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM many GROUP BY 1');
SELECT pg_temp.handed('SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM many');
SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM many GROUP BY 1 ORDER BY 1;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM many;
SET client_min_messages = warning;
DROP SCHEMA percentile CASCADE;

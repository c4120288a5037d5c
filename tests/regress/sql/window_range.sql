-- Frames of RANGE with an offset, and sums over frames of a fixed number of rows: as PostgreSQL computes them.
SET default_table_access_method = lanes; SET timezone = 'Europe/Berlin'; SET max_parallel_workers_per_gather = 0; SET extra_float_digits = 3; SET work_mem = '64MB';
CREATE SCHEMA window_range; SET search_path = window_range;
CREATE TABLE sample (ts timestamptz, t timestamp, d date, g int, i2 int2, i4 int4, i8 int8, v float8, r real, f float8);
INSERT INTO sample SELECT ts, ts AT TIME ZONE 'UTC', ts::date, i % 4, (i % 50)::int2, NULLIF(i * 31 % 200, 7), i / 3, CASE WHEN i % 29 = 0 THEN NULL ELSE sin(i) * 1000 END, i / 7.0, sin(i)
    FROM (SELECT i, NULLIF(timestamptz '2026-03-28 20:00:00' + i * interval '7 min' + (i % 3) * interval '1 s', timestamptz '2026-03-28 21:10:01') AS ts FROM generate_series(1, 1200) i) s;
INSERT INTO sample SELECT NULL, NULL, NULL, i % 3, NULL, NULL, NULL, i, i, i FROM generate_series(1, 5) i;
INSERT INTO sample VALUES ('infinity', 'infinity', 'infinity', 1, 1, 1, 9223372036854775807, 1, 1, 1), ('-infinity', '-infinity', '-infinity', 1, 32767, 2147483647, -9223372036854775808, 2, 2, 2), ('infinity', 'infinity', 'infinity', 1, -32768, -2147483648, 9223372036854775800, 'NaN', 3, 3);
CREATE TABLE sample_heap USING heap AS TABLE sample;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'sample';
-- Which of the rows that tie comes first is not defined; their keys are equal.
CREATE FUNCTION pg_temp.framed(ordered text, frame text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.same(format('SELECT g, ts, i8, i2, f, count(*) OVER w, count(v) OVER w, min(v) OVER w, max(i4) OVER w, sum(i8) OVER w, first_value(%1$s) OVER w, last_value(%1$s) OVER w, nth_value(%1$s, 2) OVER w FROM sample WINDOW w AS (PARTITION BY g ORDER BY %2$s RANGE BETWEEN %3$s)',
        split_part(ordered, ' ', 1), ordered, frame)) $$;
-- Times, in both orders, with NULLs at either end; bounds on both sides of the current row; peers and open ends.
SELECT pg_temp.framed('ts', '''1 hour'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('ts', '''30 min'' PRECEDING AND ''10 min'' FOLLOWING');
SELECT pg_temp.framed('ts DESC', '''1 hour'' PRECEDING AND ''0 s'' FOLLOWING');
SELECT pg_temp.framed('ts NULLS FIRST', '''20 min'' FOLLOWING AND ''2 hours'' FOLLOWING');
SELECT pg_temp.framed('ts DESC NULLS LAST', '''3 hours'' PRECEDING AND ''1 hour'' PRECEDING');
SELECT pg_temp.framed('ts', '''1 hour'' FOLLOWING AND UNBOUNDED FOLLOWING');
SELECT pg_temp.framed('ts NULLS FIRST', 'UNBOUNDED PRECEDING AND ''15 min'' PRECEDING');
SELECT pg_temp.framed('t', '''1 day 1 hour'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('d', '''2 days'' PRECEDING AND ''1 day'' FOLLOWING');
SELECT pg_temp.framed('d DESC', '''1 day'' PRECEDING AND CURRENT ROW');
-- Integers of each width, up to the ends of their types.
SELECT pg_temp.framed('i2', '3 PRECEDING AND 2 FOLLOWING');
SELECT pg_temp.framed('i4 DESC', '10 PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('i4', '2147483647 PRECEDING AND 5 PRECEDING');
SELECT pg_temp.framed('i8', '9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING');
SELECT pg_temp.framed('i8 DESC', '5 FOLLOWING AND 20 FOLLOWING');
-- What PostgreSQL computes itself.
SELECT pg_temp.framed('ts', '''1 day'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('t', '''1 month'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('d', '''5 hours'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('f', '0.5 PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('ts', '''-1 hour'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('i8', '-1 PRECEDING AND CURRENT ROW');
SELECT pg_temp.same('SELECT count(*) OVER (ORDER BY ts GROUPS 2 PRECEDING) FROM sample');
-- Averages and sums of floats, which are added in the order of the frame.
SELECT pg_temp.same('SELECT g, ts, sum(v) OVER w, avg(v) OVER w, sum(r) OVER w, avg(r) OVER w FROM sample WINDOW w AS (PARTITION BY g ORDER BY ts RANGE ''45 min'' PRECEDING)');
SELECT pg_temp.same('SELECT g, i8, sum(f) OVER w, avg(f) OVER w, sum(r) OVER w, avg(r) OVER w, sum(v) OVER w FROM sample WINDOW w AS (PARTITION BY g ORDER BY i8, f ROWS 33 PRECEDING)');
SELECT pg_temp.same('SELECT i8, sum(f) OVER w, avg(f) OVER w, sum(r) OVER w, avg(r * f) OVER w FROM sample WHERE i8 IS NOT NULL WINDOW w AS (ORDER BY i8, f ROWS BETWEEN 5 PRECEDING AND 40 FOLLOWING)');
SELECT pg_temp.same('SELECT i8, sum(f) OVER w, avg(f) OVER w FROM sample WHERE i8 IS NOT NULL WINDOW w AS (ORDER BY i8, f ROWS BETWEEN 50 FOLLOWING AND 60 FOLLOWING)');
SELECT pg_temp.same('SELECT sum(round(s::numeric, 6)) FROM (SELECT sum(f) OVER (ORDER BY i8, f ROWS 20 PRECEDING) AS s FROM sample) q');
-- The first rows of each partition, which are selected without a sort of the others.
SELECT pg_temp.same('SELECT * FROM (SELECT g, i4, f, row_number() OVER w AS place, rank() OVER w AS rank, lag(f) OVER w AS lag FROM sample WINDOW w AS (PARTITION BY g ORDER BY i4 DESC, f)) q WHERE place <= 3');
SELECT pg_temp.same('SELECT * FROM (SELECT g, f, dense_rank() OVER w, row_number() OVER w AS place FROM sample WINDOW w AS (PARTITION BY g ORDER BY f DESC)) q WHERE place < 4 AND place < 3');
SELECT pg_temp.same('SELECT * FROM (SELECT f, lead(f) OVER w, count(*) OVER w, row_number() OVER w AS place FROM sample WINDOW w AS (ORDER BY f)) q WHERE place <= 2');
SELECT pg_temp.same('SELECT * FROM (SELECT f, row_number() OVER (ORDER BY f) AS place FROM sample) q WHERE place <= 0');
SELECT pg_temp.same('SELECT g, max(f) FROM (SELECT g, f, row_number() OVER (PARTITION BY g ORDER BY ts NULLS FIRST, f) AS place FROM sample WHERE v IS NOT NULL) q WHERE place = 1 GROUP BY g');
-- A bound that is no time.
INSERT INTO sample (ts, t, d, g, i8) VALUES ('4714-11-24 00:00:00+00 BC', '4714-11-24 00:00:00 BC', '4714-11-24 BC', 9, 1);
INSERT INTO sample_heap (ts, t, d, g, i8) VALUES ('4714-11-24 00:00:00+00 BC', '4714-11-24 00:00:00 BC', '4714-11-24 BC', 9, 1);
SELECT pg_temp.framed('ts', '''1 hour'' PRECEDING AND CURRENT ROW');
SELECT pg_temp.framed('t', 'CURRENT ROW AND ''1 hour'' FOLLOWING');
SELECT pg_temp.framed('d', '''1 day'' PRECEDING AND CURRENT ROW');
-- A bound that is no time does not matter where no row is left to be compared.
DELETE FROM sample; DELETE FROM sample_heap;
INSERT INTO sample (ts, t, d, g, i8) SELECT t, t, t, 1, 1 FROM unnest(ARRAY[timestamp '294276-12-30', '294276-12-31 12:00', NULL]) t;
INSERT INTO sample_heap TABLE sample;
SELECT pg_temp.framed('t', 'CURRENT ROW AND ''37 hours'' FOLLOWING');
SELECT pg_temp.framed('ts NULLS FIRST', '''37 hours'' FOLLOWING AND UNBOUNDED FOLLOWING');
SELECT pg_temp.framed('d', '''1 day'' FOLLOWING AND ''2 days'' FOLLOWING');
SELECT pg_temp.framed('t', '''1 hour'' FOLLOWING AND ''2 hours'' FOLLOWING');
SET client_min_messages = warning;
DROP SCHEMA window_range CASCADE;

-- Nested aggregation over groups that do not fit into memory together: it takes them part by part.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA nested_parts; SET search_path = nested_parts;
CREATE TABLE trade (ts timestamptz, sym text, price float8, size int, flag bool, tag uuid);
INSERT INTO trade SELECT timestamptz '2024-01-01' + (i / 2) * interval '1 s', CASE WHEN i % 31 <> 0 THEN 'S' || i * 7 % 211 END,
    CASE WHEN i % 97 = 0 THEN 'NaN' WHEN i % 89 = 0 THEN -0.0 WHEN i % 83 = 0 THEN 0 ELSE i % 500 END, i % 1000, CASE WHEN i % 5 <> 0 THEN i % 2 = 0 END, md5((i % 300)::text)::uuid
    FROM generate_series(1, 40000) i;
CREATE TABLE trade_heap USING heap AS SELECT * FROM trade;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'trade';
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE FUNCTION pg_temp.facts(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(line, 'Batches: \d+', 'Batches: several') FROM pg_temp.explained(query, 'Custom Scan|Batches|Handed') line $$;
SELECT pg_temp.facts('SELECT count(*), sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym OFFSET 0) q');
SELECT pg_temp.facts('SELECT sym, sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q GROUP BY sym');
-- Keys below that are keys above, of each type; keys that are arguments; HAVING below; three levels.
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT count(*), sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q',
    'SELECT sym, count(*), sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q GROUP BY sym',
    'SELECT price, count(*), sum(n) FROM (SELECT ts, price, count(*) AS n FROM trade GROUP BY ts, price) q GROUP BY price',
    'SELECT flag, sym, min(ts), max(n), count(DISTINCT sym) FROM (SELECT ts, sym, flag, count(*) AS n FROM trade GROUP BY ts, sym, flag) q GROUP BY flag, sym',
    'SELECT size % 7, avg(n) FROM (SELECT ts, size, count(*) AS n FROM trade GROUP BY ts, size HAVING count(*) < 2 AND min(price) > 5) q GROUP BY 1',
    'SELECT date_trunc(''hour'', ts), sum(total), count(*) FILTER (WHERE sym > ''S3'') FROM (SELECT ts, sym, sum(price) AS total FROM trade WHERE size > 10 GROUP BY ts, sym) q GROUP BY 1',
    'SELECT tag, count(*) FROM (SELECT ts, tag, count(*) AS n FROM trade GROUP BY ts, tag) q GROUP BY tag',
    'SELECT n, count(*) FROM (SELECT sym, sum(n) AS n FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q GROUP BY sym) r GROUP BY n'
    ]) query;
-- The groups above take too much memory.
SELECT pg_temp.same('SELECT ts, sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q GROUP BY ts');
-- Each execution reads all parts again.
SELECT a, (SELECT sum(n) FROM (SELECT ts, sym, count(*) AS n FROM trade WHERE size < a GROUP BY ts, sym OFFSET 0) q WHERE n > 0) FROM unnest(ARRAY[1000, 500, 1000]) a;
SELECT a, (SELECT sum(n * a) FROM (SELECT ts, sym, count(*) AS n FROM trade GROUP BY ts, sym) q) FROM unnest(ARRAY[1, 2]) a;
SET client_min_messages = warning;
DROP SCHEMA nested_parts CASCADE;

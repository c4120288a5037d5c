-- Operands of UNION, INTERSECT and EXCEPT that become distinct, so that vectors find their distinct rows.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA set_operation; SET search_path = set_operation;
CREATE TABLE trade (ts timestamptz, k int, s text, v float8, n numeric);
INSERT INTO trade SELECT timestamptz '2026-01-01' + i * interval '1 s', NULLIF(i % 40, 3), NULLIF('s' || i % 7, 's2'), CASE i % 5 WHEN 0 THEN float8 'NaN' WHEN 1 THEN float8 '-0' WHEN 2 THEN 0 ELSE i % 3 END, (i % 9) + 0.50
    FROM generate_series(1, 6000) i;
SELECT lanes.seal('trade');
INSERT INTO trade SELECT ts, k + 20, s || 'x', -v, n + 1 FROM trade WHERE k < 4;
DELETE FROM trade WHERE k = 7;
CREATE TABLE quote (ts timestamptz, k int8, s varchar, b float8) WITH (order_by = 'k, ts');
INSERT INTO quote SELECT timestamptz '2026-01-01' + i * interval '2 s', NULLIF(i % 30 + 10, 11), 's' || i % 9, i % 4 FROM generate_series(1, 3000) i;
CREATE TABLE trade_heap USING heap AS SELECT * FROM trade;
CREATE TABLE quote_heap USING heap AS SELECT * FROM quote;
VACUUM ANALYZE trade, quote, trade_heap, quote_heap;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'trade|quote';

SELECT pg_temp.nodes('SELECT k FROM trade WHERE v > 0 UNION SELECT k FROM quote');
-- Types, NULLs, zeros of both signs, NaN, conditions, expressions of columns.
SELECT pg_temp.same('SELECT k FROM trade UNION SELECT k FROM quote');
SELECT pg_temp.same('SELECT k FROM trade INTERSECT SELECT k FROM quote');
SELECT pg_temp.same('SELECT k FROM trade EXCEPT SELECT k FROM quote');
SELECT pg_temp.same('SELECT s, k FROM trade WHERE v > 0 UNION SELECT s, k FROM quote WHERE b = 2');
SELECT pg_temp.same('SELECT s::text FROM trade INTERSECT SELECT s::text FROM quote');
SELECT pg_temp.same('SELECT abs(v) FROM trade UNION SELECT b FROM quote');
SELECT pg_temp.same('SELECT v + 0 FROM trade EXCEPT SELECT b FROM quote');
SELECT pg_temp.same('SELECT n + 0.0, k % 4 FROM trade UNION SELECT b::numeric, 1 FROM quote');
-- Operations in operations. Of one with ALL, duplicates count.
SELECT pg_temp.same('SELECT k FROM trade UNION ALL SELECT k FROM quote');
SELECT pg_temp.same('(SELECT k FROM trade UNION ALL SELECT k FROM quote) EXCEPT SELECT k FROM quote WHERE b = 1');
SELECT pg_temp.same('(SELECT k FROM trade EXCEPT ALL SELECT k FROM quote) UNION SELECT k FROM quote WHERE b = 1');
SELECT pg_temp.same('(SELECT k FROM trade EXCEPT SELECT k FROM quote) UNION ALL SELECT k FROM trade WHERE v = 1');
SELECT pg_temp.same('(SELECT k FROM trade INTERSECT ALL SELECT k FROM quote) INTERSECT ALL (SELECT k FROM trade UNION SELECT k FROM quote)');
SELECT pg_temp.same('SELECT s FROM trade UNION SELECT s FROM quote UNION SELECT s || ''y'' FROM trade ORDER BY 1 DESC LIMIT 5 OFFSET 2');
-- In FROM, WITH, recursion, beside a sort or limit of an operand, and with parameters.
SELECT pg_temp.same('SELECT u.k, count(*) FROM (SELECT k, s FROM trade UNION SELECT k, s FROM quote) u GROUP BY 1');
SELECT pg_temp.same('WITH u AS (SELECT k FROM trade INTERSECT SELECT k FROM quote) SELECT a.k FROM u a JOIN u b ON b.k = a.k + 1');
SELECT pg_temp.same('WITH RECURSIVE r (k) AS (SELECT k::int8 FROM trade WHERE k < 3 UNION SELECT r.k + 1 FROM r WHERE r.k < 6) SELECT k FROM r');
SELECT pg_temp.same('(SELECT k FROM trade ORDER BY k NULLS FIRST LIMIT 3) UNION SELECT k FROM quote WHERE k > 38');
SELECT pg_temp.same('SELECT q.k, (SELECT count(*) FROM (SELECT t.k FROM trade t WHERE t.k > q.k UNION SELECT 5) u) FROM quote q WHERE q.ts < ''2026-01-01 00:01''');
PREPARE above (float8) AS SELECT k FROM trade WHERE v >= $1 EXCEPT SELECT k FROM quote WHERE b > $1 ORDER BY 1;
SET plan_cache_mode = force_generic_plan;
SELECT count(*) FROM (SELECT 1) x; EXECUTE above (2);
RESET plan_cache_mode;
-- Types without an order.
CREATE TABLE odd (k int, x xid, a xid[], c aclitem);
INSERT INTO odd SELECT i % 3, (i % 3)::text::xid, ARRAY[(i % 2)::text::xid], 'postgres=r/postgres' FROM generate_series(1, 1000) i;
ANALYZE odd;
SELECT count(*) FROM (SELECT x FROM odd UNION SELECT '2'::xid) u;
SELECT count(*) FROM (SELECT a, c FROM odd UNION SELECT a, c FROM odd) u;
SELECT count(*) FROM (SELECT k::text::xid FROM odd INTERSECT SELECT x FROM odd) u;
-- Where most rows are distinct, the operation becomes a join: see set_difference. Where nobody knows, the operand stays.
SELECT pg_temp.nodes('SELECT ts FROM trade UNION SELECT ts FROM quote');
CREATE TABLE unknown (k int);
INSERT INTO unknown SELECT i % 3 FROM generate_series(1, 3000) i;
SELECT pg_temp.nodes('SELECT k FROM unknown UNION SELECT k::int FROM quote');
SET lanes.vectorize = off;
SELECT pg_temp.nodes('SELECT k FROM trade UNION SELECT k FROM quote');
RESET lanes.vectorize;
-- Row-level security hides the rows that it hides.
CREATE ROLE lanes_set_reader; GRANT USAGE ON SCHEMA set_operation TO lanes_set_reader; GRANT SELECT ON trade, quote TO lanes_set_reader;
ALTER TABLE trade ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON trade USING (k < 2);
SET ROLE lanes_set_reader;
SELECT k FROM trade UNION SELECT k FROM quote WHERE k < 13 ORDER BY 1;
RESET ROLE;
SET client_min_messages = warning;
DROP OWNED BY lanes_set_reader; DROP ROLE lanes_set_reader;
DROP SCHEMA set_operation CASCADE;

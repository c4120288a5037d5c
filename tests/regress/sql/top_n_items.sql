-- The first rows of an order by texts, bytes and numerics. Each answer is compared with that of a heap table.
CREATE DOMAIN label AS varchar(100);
CREATE TABLE h (id int, few text, many text COLLATE "C", c char(12), v varchar, d label, b bytea, n numeric, m numeric(12, 3), f float8) USING heap;
INSERT INTO h
SELECT i, CASE WHEN i % 13 > 0 THEN (array['', 'a', 'A', 'ab', 'a b', 'longer than eight', 'longer than nine', 'é'])[i % 8 + 1] END,
       'https://example.com/' || md5((i % 3000)::text), repeat('x', i % 3) || repeat(' ', i % 4), CASE WHEN i % 7 > 0 THEN 'v' || i % 100 END,
       'd' || i % 21, decode(lpad(to_hex(i % 700), 6, '0'), 'hex'),
       CASE i % 17 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN 0 WHEN 5 THEN 0.00
            ELSE (i * 7919::int8 % 20011 - 10000) * power(10::numeric, i % 40 - 20) END,
       (i * 31 % 5000 - 2500) / 8.0, i % 5
FROM generate_series(1, 9000) i;
-- Texts that a heap stores out of line, which differ at their ends.
INSERT INTO h (id, many, n) SELECT 9000 + i, repeat('https://', 10000) || i % 3, i FROM generate_series(1, 6) i;
CREATE TABLE l (LIKE h) USING lanes;
INSERT INTO l SELECT * FROM h;
ANALYZE l, h;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'l'; SET regress.heap_tables = 'h';
CREATE FUNCTION same(query text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.same_order(query, 'LanesTopN') $$;

EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY few LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM l WHERE id > 5 ORDER BY n DESC NULLS LAST, many, id LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY many COLLATE "POSIX" DESC LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY d, c LIMIT 5;
-- Expressions of texts stay with PostgreSQL, as other operators do.
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY lower(few) LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM l ORDER BY few USING ~<~ LIMIT 5;

CREATE VIEW orders AS
SELECT format('%s %s NULLS %s', k, d, n) AS first, CASE n WHEN 'FIRST' THEN 'DESC' ELSE 'ASC' END AS last
FROM unnest(array['few', 'few COLLATE "C"', 'many', 'c', 'c COLLATE "C"', 'v', 'd', 'b', 'n', 'm']) k, unnest('{ASC, DESC}'::text[]) d,
     unnest('{FIRST, LAST}'::text[]) n;
SELECT DISTINCT same(format('SELECT id, few, n FROM l ORDER BY %s, id %s LIMIT %s OFFSET %s', first, last, c, o))
FROM orders, (VALUES (1, 0), (10, 990), (9100, 0)) v (c, o);
SELECT DISTINCT same(format('SELECT id FROM l ORDER BY f, %s, id %s LIMIT 100', first, last)) FROM orders;
SELECT DISTINCT same(format('SELECT id FROM l WHERE id %% 3 = 1 AND few <> ''a'' ORDER BY %s, many, id %s LIMIT 100', first, last)) FROM orders;
SELECT same('SELECT * FROM l WHERE length(lower(v)) + 0 * id = 2 ORDER BY few, id LIMIT 20');
SELECT same('SELECT id, octet_length(many) FROM l ORDER BY many DESC, id LIMIT 8');
SELECT same('SELECT x, q.* FROM generate_series(0, 9) x, LATERAL (SELECT id, v FROM l WHERE f = x % 4 ORDER BY v DESC, n, id LIMIT x) q');
SELECT same('SELECT id FROM l WHERE few IS NULL ORDER BY few, id LIMIT 3');
SELECT same('SELECT id FROM l WHERE id < 0 ORDER BY few, id LIMIT 3');
SELECT count(*) FROM (SELECT FROM l ORDER BY few LIMIT 0) q;

-- Rows, and texts, that exceed the memory take several passes.
SET work_mem = '64kB';
SELECT same('SELECT id, few FROM l ORDER BY few DESC, id LIMIT 3000');
SELECT same('SELECT id FROM l ORDER BY many DESC, id LIMIT 50');
RESET work_mem;

-- Sealed rows in several segments, rows that were deleted, and rows that are open.
INSERT INTO h SELECT id + 10000 * i, few, many || i % 20, c, v, d, b, n + i, m, f FROM h, generate_series(1, 4) i WHERE id <= 9000;
INSERT INTO l SELECT * FROM h WHERE id > 10000;
SELECT lanes.seal('l') > 0 AS sealed;
DELETE FROM l WHERE id % 11 = 0; DELETE FROM h WHERE id % 11 = 0;
INSERT INTO h SELECT id + 500000, few, many, c, v, d, b, n, m, f FROM h WHERE id < 3000;
INSERT INTO l SELECT * FROM h WHERE id > 500000;
ANALYZE l, h;
SELECT DISTINCT same(format('SELECT id, few, n FROM l ORDER BY %s, id %s LIMIT 30', first, last)) FROM orders;
SET lanes.decode_after = 0;
SELECT DISTINCT same(format('SELECT id, few, n FROM l ORDER BY %s, id %s LIMIT 30', first, last)) FROM orders;
RESET lanes.decode_after;

-- Groups of many texts: one key, two, empty ones, distinct ones, with all memory and with little.
CREATE TABLE t_heap (url text, phrase text, kind text, note char(8)) USING heap;
INSERT INTO t_heap SELECT 'https://example.com/' || i * 7919::int8 % 20011 || repeat('/', i % 60),
       CASE WHEN i % 10 = 0 THEN 'phrase ' || i % 9001 WHEN i % 10 < 8 THEN '' END, 'kind ' || i % 5, repeat(' ', i % 3)
FROM generate_series(1, 40000) i;
INSERT INTO t_heap SELECT repeat('long', 20000) || i % 3, 'x' FROM generate_series(1, 6) i;
CREATE TABLE t (LIKE t_heap) USING lanes;
INSERT INTO t SELECT * FROM t_heap;
ANALYZE t, t_heap;
SET regress.lanes_tables = 't'; SET regress.heap_tables = '\1_heap';
CREATE VIEW groups AS SELECT unnest(array[
    'SELECT url, count(*) FROM t GROUP BY url', 'SELECT phrase, count(*) FROM t GROUP BY phrase', 'SELECT note, count(*) FROM t GROUP BY note',
    'SELECT url, phrase, count(*), max(kind) FROM t GROUP BY url, phrase', 'SELECT phrase, kind, count(*) FROM t GROUP BY phrase, kind',
    'SELECT count(DISTINCT url), count(DISTINCT phrase) FROM t', 'SELECT kind, count(DISTINCT url) FROM t GROUP BY kind',
    'SELECT url, count(*) FROM t WHERE phrase <> '''' GROUP BY url ORDER BY 2 DESC, 1 LIMIT 10',
    'SELECT x, (SELECT count(*) FROM (SELECT url FROM t WHERE kind = ''kind '' || x GROUP BY url) u) FROM generate_series(0, 5) x']) AS query;
SELECT pg_temp.same(query) FROM groups;
SELECT lanes.seal('t') > 0 AS sealed;
SELECT DISTINCT pg_temp.agreement(query) ~ '^same' AS agree FROM groups;
SET work_mem = '1MB';
SELECT DISTINCT pg_temp.agreement(query) ~ '^same' AS agree FROM groups;
RESET work_mem;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT DISTINCT pg_temp.agreement(query) ~ '^same' AS agree FROM groups;
DROP VIEW orders, groups;
DROP TABLE l, h, t, t_heap;
DROP FUNCTION same(text);
DROP DOMAIN label;

-- Window functions of which few rows or few columns are read.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA window_first; SET search_path = window_first;
CREATE TABLE trade (id int, sym text, note text, price float8, size int, day date);
INSERT INTO trade SELECT i, CASE WHEN i % 41 <> 0 THEN 'S' || i * 7 % 13 END, CASE WHEN i % 3 <> 0 THEN repeat('n', i % 50) || i % 20 END,
    CASE WHEN i % 97 = 0 THEN 'NaN' WHEN i % 89 = 0 THEN -0.0 WHEN i % 83 = 0 THEN 0 WHEN i % 11 = 0 THEN NULL ELSE i * 37 % 50 END, i * 7919 % 400, date '2024-01-01' + i * 31 % 60
    FROM generate_series(1, 9000) i;
CREATE TABLE trade_heap USING heap AS SELECT * FROM trade;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'trade';
-- The first rows of each partition, with ties and NULLs. Which of the rows that tie come first is decided by `id`.
SELECT pg_temp.same(format(query, direction)) FROM unnest(ARRAY[
    'SELECT sym, id, price, place FROM (SELECT *, row_number() OVER (PARTITION BY sym ORDER BY price %s, id) AS place FROM trade) q WHERE place <= 3',
    'SELECT sym, price, place FROM (SELECT *, row_number() OVER (PARTITION BY sym ORDER BY price %s) AS place FROM trade) q WHERE place < 5',
    'SELECT sym, id, price, place FROM (SELECT *, rank() OVER (PARTITION BY sym ORDER BY price %s) AS place FROM trade) q WHERE place <= 2',
    'SELECT sym, id, price, place FROM (SELECT *, rank() OVER (PARTITION BY sym ORDER BY price %s, size) AS place FROM trade) q WHERE place <= 7',
    'SELECT sym, id, price, place FROM (SELECT *, dense_rank() OVER (PARTITION BY sym ORDER BY price %s) AS place FROM trade) q WHERE place <= 2',
    'SELECT id, price, place FROM (SELECT *, rank() OVER (ORDER BY price %s) AS place FROM trade) q WHERE place <= 4',
    'SELECT id, size, place FROM (SELECT *, row_number() OVER (PARTITION BY size %% 3 ORDER BY size %s, id DESC) AS place FROM trade) q WHERE place <= 100',
    'SELECT sum(price), count(*), max(place) FROM (SELECT price, rank() OVER (PARTITION BY sym ORDER BY price %s) AS place FROM trade) q WHERE place <= 3',
    'SELECT sym, place, other, price, before FROM (SELECT sym, price, row_number() OVER w AS place, rank() OVER v AS other, lag(price) OVER w AS before FROM trade WINDOW v AS (PARTITION BY sym ORDER BY price %s), w AS (PARTITION BY sym ORDER BY price %1$s, id)) q WHERE place <= 3 AND other <= 2'
    ]) query, unnest(ARRAY['', 'DESC', 'NULLS FIRST', 'DESC NULLS LAST']) direction;
SELECT count(*), count(DISTINCT sym), max(place) FROM (SELECT sym, id, row_number() OVER (PARTITION BY sym) AS place FROM trade) q WHERE place <= 2;
-- The argument of a function is evaluated for the first rows alone.
SELECT count(*), sum(b) FROM (SELECT row_number() OVER w AS place, lag(1 / (size - 399)) OVER w AS b FROM trade WINDOW w AS (PARTITION BY sym ORDER BY size)) q WHERE place <= 3;
-- Keys that the query does not select, and texts that it does.
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT lag(size) OVER (PARTITION BY sym ORDER BY id) FROM trade',
    'SELECT note, lag(note) OVER (PARTITION BY sym ORDER BY id) FROM trade',
    'SELECT sym, note, price - lag(price) OVER (PARTITION BY sym ORDER BY id) FROM trade WHERE size <> 3',
    'SELECT note, sum(abs(d)), count(*) FROM (SELECT note, sym, price - lag(price) OVER (PARTITION BY sym ORDER BY id) AS d FROM trade) q GROUP BY note',
    'SELECT sym, sum(abs(d)), count(DISTINCT note), count(note) FROM (SELECT note, sym, price - lag(price) OVER (PARTITION BY sym ORDER BY id) AS d FROM trade) q GROUP BY sym',
    'SELECT q FROM (SELECT size, rank() OVER (PARTITION BY sym ORDER BY price) AS place FROM trade) q',
    'SELECT place FROM (SELECT day, rank() OVER (PARTITION BY sym ORDER BY size) AS place FROM trade) q UNION ALL SELECT size FROM trade',
    'WITH q AS MATERIALIZED (SELECT size, rank() OVER (PARTITION BY sym ORDER BY price) AS place FROM trade) SELECT a.place, b.size FROM q a JOIN q b ON a.size = b.place WHERE a.size < 9'
    ]) query;
SELECT size FROM (SELECT size, sym, rank() OVER (PARTITION BY sym ORDER BY id) FROM trade) q ORDER BY rank DESC, sym DESC NULLS LAST LIMIT 3;
SELECT rank() OVER (PARTITION BY sym ORDER BY id) FROM trade ORDER BY sym NULLS FIRST, id LIMIT 3;
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT DISTINCT rank() OVER (PARTITION BY sym ORDER BY size) FROM trade',
    'SELECT avg(place), string_agg(place::text, '','' ORDER BY place) FROM (SELECT rank() OVER (PARTITION BY sym ORDER BY size) AS place FROM trade) q',
    'SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY place, s) AS r FROM (SELECT rank() OVER (PARTITION BY sym ORDER BY size) AS place, size AS s FROM trade) q) p'
    ]) query;
-- Orders by one key: of few values, of many, of a partition with few rows and with many.
SELECT pg_temp.same(format('SELECT id, rank() OVER w, dense_rank() OVER w, sum(size) OVER w FROM trade WINDOW w AS (%s ORDER BY %s)', partition, key))
    FROM unnest(ARRAY['', 'PARTITION BY sym', 'PARTITION BY id / 5']) partition, unnest(ARRAY['size', 'day DESC', 'size * 1000003::bigint * 100000', '-id', 'id::float8 / 7 DESC']) key;
-- Orders by text.
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT id, rank() OVER w, dense_rank() OVER w, sum(size) OVER w, first_value(note) OVER w FROM trade WINDOW w AS (PARTITION BY size % 5 ORDER BY note)',
    'SELECT id, row_number() OVER w, lag(note) OVER w FROM trade WINDOW w AS (PARTITION BY day ORDER BY note DESC, sym NULLS FIRST, id)',
    'SELECT id, rank() OVER (ORDER BY sym DESC NULLS LAST, price, note COLLATE "C") FROM trade WHERE size > 7',
    'SELECT id, rank() OVER (ORDER BY note COLLATE "C" DESC), cume_dist() OVER (ORDER BY note COLLATE "C" DESC) FROM trade',
    'SELECT id, note, place FROM (SELECT *, row_number() OVER (PARTITION BY sym ORDER BY note, id) AS place FROM trade) q WHERE place <= 3',
    'SELECT id, note, place FROM (SELECT *, rank() OVER (PARTITION BY sym ORDER BY id, note) AS place FROM trade) q WHERE place <= 3',
    'SELECT max(r), sum(r) FROM (SELECT rank() OVER (PARTITION BY sym ORDER BY note) AS r FROM trade) q',
    'SELECT id, rank() OVER (PARTITION BY sym ORDER BY note || ''x'') FROM trade'
    ]) query;
-- abs
SELECT pg_temp.same('SELECT abs(price), abs(size - 200), abs(-price::real), abs((size - 200)::smallint), abs(size::bigint - 200), count(*) FROM trade GROUP BY 1, 2, 3, 4, 5');
SELECT pg_temp.same('SELECT sum(abs(size - 2147483647 - 1)) FROM trade WHERE size > 0');
SELECT pg_temp.same('SELECT sum(abs(size - 2147483647 - 1)) FROM trade');
-- Where few rows are kept, the others need no memory. Rows that tie may be many.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
INSERT INTO trade SELECT i, 'S' || i % 13, NULL, i * 7919 % 100003, i % 2, '2024-01-01' FROM generate_series(1, 30000) i;
ANALYZE trade;
SELECT pg_temp.explained(query, 'Custom Scan|Handed|WindowAgg \(actual') FROM unnest(ARRAY[
    'SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY sym ORDER BY price DESC NULLS LAST) AS place FROM trade) q WHERE place <= 3',
    'SELECT id FROM (SELECT id, rank() OVER (PARTITION BY sym ORDER BY price DESC NULLS LAST) AS place FROM trade) q WHERE place <= 3',
    'SELECT id FROM (SELECT id, rank() OVER (ORDER BY day) AS place FROM trade) q WHERE place <= 3',
    'SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY sym ORDER BY price DESC NULLS LAST) AS place FROM trade) q WHERE place <= 65',
    'SELECT id FROM (SELECT id, row_number() OVER w AS place, count(*) OVER w FROM trade WINDOW w AS (PARTITION BY sym ORDER BY price DESC NULLS LAST)) q WHERE place <= 3'
    ]) query;
SET client_min_messages = warning;
DROP SCHEMA window_first CASCADE;

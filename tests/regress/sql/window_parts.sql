-- Window functions over rows that do not fit into memory together: the table is read for one part of the partitions
-- after the other.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA window_parts; SET search_path = window_parts;
CREATE TABLE trade (id int, sym text, part int, price float8, size int, note text);
INSERT INTO trade SELECT i, CASE WHEN i % 41 <> 0 THEN 'S' || i * 7 % 499 END, i * 13 % 1009, CASE WHEN i % 11 <> 0 THEN i * 37 % 5000 END, i * 7919 % 400, CASE WHEN i % 3 <> 0 THEN 'n' || i % 20 END
    FROM generate_series(1, 40000) i;
CREATE TABLE trade_heap USING heap AS SELECT * FROM trade;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'trade';
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE FUNCTION pg_temp.facts(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(line, 'Passes: \d+', 'Passes: several') FROM pg_temp.explained(query, 'Custom Scan|Passes|Handed') line $$;
SELECT pg_temp.facts('SELECT id, lag(size) OVER (PARTITION BY sym ORDER BY id) FROM trade');
SELECT pg_temp.facts('SELECT sym, sum(d) FROM (SELECT sym, size - lag(size) OVER (PARTITION BY sym ORDER BY id) AS d FROM trade) q GROUP BY sym');
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT id, lag(size) OVER (PARTITION BY sym ORDER BY id), note FROM trade',
    'SELECT sym, id, rank() OVER w, sum(price) OVER w, lag(note) OVER w FROM trade WHERE size > 3 WINDOW w AS (PARTITION BY sym ORDER BY price DESC NULLS LAST, id)',
    'SELECT part, id, count(*) OVER w, max(price) OVER w FROM trade WINDOW w AS (PARTITION BY part ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)',
    'SELECT sum(abs(d)), count(*) FROM (SELECT price - lag(price) OVER (PARTITION BY sym ORDER BY id) AS d FROM trade) q',
    'SELECT sym, sum(d), count(note) FROM (SELECT sym, note, size - lag(size) OVER (PARTITION BY sym, part ORDER BY id) AS d FROM trade) q GROUP BY sym',
    'SELECT note, size % 3, max(r), min(sym) FROM (SELECT sym, note, size, rank() OVER (PARTITION BY sym ORDER BY size) AS r FROM trade) q GROUP BY 1, 2',
    'SELECT sym, id, place FROM (SELECT *, row_number() OVER (PARTITION BY sym ORDER BY id) AS place FROM trade) q WHERE place <= 70',
    'SELECT sym, id, place FROM (SELECT *, row_number() OVER (PARTITION BY sym ORDER BY id) AS place FROM trade) q WHERE place > 75'
    ]) query;
SELECT pg_temp.same('SELECT id, rank() OVER (PARTITION BY part ORDER BY sym DESC), lag(sym) OVER (PARTITION BY part ORDER BY sym DESC, id) FROM trade');
-- The parts come in the order of the keys.
SELECT pg_temp.same_order('SELECT sym, id, rank() OVER (PARTITION BY sym ORDER BY id DESC) FROM trade ORDER BY sym, id DESC', 'LanesWindow');
SELECT pg_temp.same_order('SELECT sym, part, id, rank() OVER (PARTITION BY part, sym ORDER BY id) FROM trade ORDER BY part DESC, sym NULLS FIRST, id', 'LanesWindow');
-- A partition that does not fit; no partitions; limits, and other parameters.
SELECT pg_temp.facts('SELECT id, lag(size) OVER (PARTITION BY id / 20000 * 0 ORDER BY id) FROM trade');
EXPLAIN (COSTS OFF) SELECT id, lag(size) OVER (ORDER BY id) FROM trade;
SELECT sym, id, rank() OVER (PARTITION BY sym ORDER BY id) FROM trade LIMIT 2;
SELECT a, (SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY sym ORDER BY id) AS r FROM trade WHERE id < a) q),
    (SELECT count(*) FROM (SELECT lag(id) OVER (PARTITION BY sym ORDER BY id) FROM trade WHERE id > 10 OFFSET a) q) FROM unnest(ARRAY[20000, 40000, 20000]) a;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT sym, id, rank() OVER (PARTITION BY sym ORDER BY id) FROM trade;
FETCH 2 FROM c; MOVE 20000 FROM c; FETCH 2 FROM c;
DELETE FROM trade;
MOVE 10000 FROM c; FETCH 2 FROM c;
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA window_parts CASCADE;

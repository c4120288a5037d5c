-- min and max of texts, by the engine: answers compared with those of PostgreSQL and of heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA text_extremes; SET search_path = text_extremes;
-- `few` has a dictionary in each segment; `many` has none, and long texts; `mid` has too many texts for ranks at first.
CREATE TABLE word (k int, few text, many text, mid varchar(40), c char(12), byc text COLLATE "C", v float8) WITH (order_by = 'k');
INSERT INTO word SELECT i, (ARRAY['beta', 'Beta', 'alpha', 'ALPHA', 'ä', 'zz', '', 'Zeta 1', 'zeta 2'])[i % 9 + 1], md5(i::text) || CASE WHEN i % 1000 = 7 THEN repeat('x', 300) ELSE '' END,
        'n' || i * 7919 % 3000, 'c' || i % 70, CASE WHEN i % 2 = 0 THEN 'a' || i % 50 ELSE 'B' || i % 60 END, i % 10
    FROM generate_series(1, 30000) i;
SELECT lanes.seal('word');
-- Open rows, NULLs, deleted rows, and texts that the sealed rows do not have.
INSERT INTO word SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE 'new ' || i % 4 END, NULL, 'm' || i % 11, CASE WHEN i % 3 = 0 THEN NULL ELSE 'd' || i % 7 END, NULL, i % 10 FROM generate_series(30001, 33000) i;
DELETE FROM word WHERE few = '' AND k < 20000;
CREATE TABLE word_heap USING heap AS SELECT * FROM word;
CREATE TABLE none (few text, c char(3));
CREATE TABLE none_heap (few text, c char(3)) USING heap;
CREATE TABLE kind (id int, name text) USING heap;
INSERT INTO kind SELECT i, 'kind ' || i % 3 FROM generate_series(0, 7) i;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'word|none';
SET regress.answer_letters = 120;

EXPLAIN (COSTS OFF) SELECT k % 3, min(few), max(few) FROM word GROUP BY 1;
SELECT pg_temp.same('SELECT min(few), max(few), min(many), max(many), min(mid), max(mid), min(c), max(c), min(byc), max(byc) FROM word');
SELECT pg_temp.same('SELECT k % 7, min(few), max(few), min(mid), max(mid) FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT k % 7, min(many), max(many), min(c), max(c), min(byc), max(byc) FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT few, min(few), max(few), max(mid) FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT c, min(c), max(c), octet_length(max(c)) FROM word GROUP BY 1');
-- One group a row, filters, conditions that few rows pass, no row, groups without a text.
SELECT pg_temp.same('SELECT k, min(few), max(mid) FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT v, min(few) FILTER (WHERE k % 100 = 3), max(few) FILTER (WHERE k < 0), max(DISTINCT mid) FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT min(mid), max(mid), max(many), min(few) FROM word WHERE k % 1000 = 17');
SELECT pg_temp.same('SELECT min(few), max(few), min(c) FROM none');
SELECT pg_temp.same('SELECT k % 5, min(few), max(many), min(byc) FROM word WHERE k > 30000 GROUP BY 1');
SELECT pg_temp.same('SELECT k % 3, max(few) FROM word GROUP BY 1 HAVING max(few) > ''m'' AND min(few) < ''b''');
-- Collations beside the column's own.
SELECT pg_temp.same('SELECT k % 3, min(few COLLATE "C"), max(few COLLATE "C"), max(byc COLLATE "default"), max(many COLLATE "POSIX") FROM word GROUP BY 1');
SELECT pg_temp.same('SELECT v, min(byc COLLATE "C.utf8"), max(few COLLATE "C.utf8") FROM word GROUP BY 1');
-- What PostgreSQL computes: texts that are no column, and `char` without a length, of which it returns the first.
SELECT pg_temp.same('SELECT k % 3, min(lower(few)), max(few || c) FROM word GROUP BY 1');
CREATE TABLE padded (b bpchar, t text);
INSERT INTO padded VALUES ('a ', 'a '), ('a', 'a'), ('a  ', 'a  '), ('b', 'b'), ('b  ', 'b  ');
SELECT quote_literal(min(b)), quote_literal(max(b)), quote_literal(min(t::bpchar)), quote_literal(min(t)), quote_literal(max(t)) FROM padded;
-- Joins, and rows that an outer join adds.
SELECT pg_temp.same('SELECT d.name, min(w.few), max(w.c) FROM word w JOIN kind d ON d.id = w.v GROUP BY 1');
SELECT pg_temp.same('SELECT d.name, min(w.few), max(w.mid) FROM word w RIGHT JOIN kind d ON d.id = w.v AND w.k = 17 GROUP BY 1');
-- By partitions; with groups that wait in files.
CREATE TABLE part (k int, t text) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (20000);
CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (20000) TO (40000);
INSERT INTO part SELECT k, few FROM word;
CREATE TABLE part_heap USING heap AS SELECT * FROM part;
ANALYZE part;
SET regress.lanes_tables = 'word|none|part';
SELECT pg_temp.same('SELECT k % 4, min(t), max(t) FROM part GROUP BY 1');
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT pg_temp.explained('SELECT k, min(few), max(many) FROM word GROUP BY 1', 'LanesAggregate|Batches|Handed Over');
SELECT pg_temp.same('SELECT k, min(few), max(many) FROM word GROUP BY 1');

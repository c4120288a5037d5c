-- EXISTS, NOT EXISTS and IN whose sub-select reads a large table, while few rows of the query around it ask: the few rows
-- are the hash table, and the large table passes by. Answers are compared with those without vectors and of heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA exists_large; SET search_path = exists_large;
CREATE TABLE item (ord int, sup int, code text, wide int8, price float8, small float4, fee numeric, due date, got date, id uuid);
INSERT INTO item SELECT CASE WHEN i % 37 = 0 THEN NULL ELSE i / 4 END, CASE WHEN i % 41 = 0 THEN NULL ELSE i * 7 % 50 END, CASE WHEN i % 43 = 0 THEN NULL ELSE 'c' || i % 900 END,
        (i / 8) * 1000000000::int8, (ARRAY[NULL, 'NaN', '-0', '0', '1.5'])[i % 5 + 1]::float8, (ARRAY[NULL, 'NaN', '-0', '0', '2.5'])[i / 7 % 5 + 1]::float4, (i % 30)::numeric / 4,
        date '2024-01-01' + i % 60, date '2024-01-01' + i * 11 % 70, md5((i % 700)::text)::uuid
    FROM generate_series(1, 24000) i;
SELECT lanes.seal('item');
INSERT INTO item SELECT ord, sup + 1, code, wide, price, small, fee, due, got, id FROM item WHERE ord % 100 = 3;
DELETE FROM item WHERE ord % 90 = 5;
CREATE TABLE item_heap USING heap AS SELECT * FROM item;
CREATE TABLE bill (ord int, sup int, code text, wide int8, price float8, small float4, fee numeric, day date, kind text, id uuid);
INSERT INTO bill SELECT CASE WHEN i % 19 = 0 THEN NULL ELSE i * 5 END, CASE WHEN i % 17 = 0 THEN NULL ELSE i % 50 END, CASE WHEN i % 13 = 0 THEN NULL ELSE 'c' || i * 2 END,
        i * 1000000000::int8, (ARRAY['-0', NULL, 'NaN', '7'])[i % 4 + 1]::float8, (ARRAY['-0', '2.5', NULL, 'NaN'])[i % 4 + 1]::float4, (i % 9)::numeric / 2,
        date '2024-01-01' + i % 50, (ARRAY['a', 'b', NULL])[i % 3 + 1], md5((i * 3)::text)::uuid
    FROM generate_series(1, 1500) i;
-- Duplicates of keys.
INSERT INTO bill SELECT ord, sup + 1, code, wide, price, small, fee, day, 'again', id FROM bill WHERE ord % 15 = 0;
CREATE TABLE bill_heap USING heap AS SELECT * FROM bill;
CREATE TABLE nothing (ord int);
CREATE TABLE nothing_heap (ord int) USING heap;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare

SET regress.lanes_tables = 'item|bill|nothing';

EXPLAIN (COSTS OFF) SELECT kind, count(*) FROM bill o WHERE day < '2024-01-05' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.due < i.got) GROUP BY kind;
EXPLAIN (COSTS OFF) SELECT o.* FROM bill o WHERE day < '2024-01-05' AND NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup);

-- Keys of all types, with conditions on either side, as rows and in groups.
CREATE FUNCTION pg_temp.forms(condition text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.same(replace(query, '~', condition)) FROM unnest(ARRAY[
        'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE ~)',
        'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND NOT EXISTS (SELECT FROM item i WHERE ~)',
        'SELECT kind, count(*), count(DISTINCT sup), max(wide) FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE ~) GROUP BY 1',
        'SELECT kind, count(*), count(DISTINCT sup), max(wide) FROM bill o WHERE day < ''2024-01-06'' AND NOT EXISTS (SELECT FROM item i WHERE ~) GROUP BY 1']) AS query $$;
SELECT pg_temp.forms('i.ord = o.ord');
SELECT pg_temp.forms('i.code = o.code AND i.due < i.got');
SELECT pg_temp.forms('i.wide = o.wide');
SELECT pg_temp.forms('i.price = o.price AND i.due = o.day');
SELECT pg_temp.forms('i.small = o.small AND i.sup = o.sup');
SELECT pg_temp.forms('i.id = o.id AND i.sup > 20');
SELECT pg_temp.forms('i.ord + 1 = o.ord');
SELECT pg_temp.forms('i.ord = o.ord AND i.got > ''2030-01-01''');
-- Keys that the engine does not compare.
SELECT pg_temp.forms('i.fee = o.fee');
-- Conditions that are no keys: by vectors, and by PostgreSQL.
SELECT pg_temp.forms('i.ord = o.ord AND i.sup <> o.sup');
SELECT pg_temp.forms('i.ord = o.ord AND i.sup <> o.sup AND i.due < i.got');
SELECT pg_temp.forms('i.sup = o.sup AND i.due >= o.day AND i.price IS DISTINCT FROM o.price');
SELECT pg_temp.forms('i.ord = o.ord AND i.code > o.code');
SELECT pg_temp.forms('i.ord = o.ord AND i.fee <= o.fee');
SELECT pg_temp.forms('i.ord = o.ord AND o.kind = ''a''');
-- IN, NOT IN, LEFT JOIN … IS NULL; joins around; empty sides; several sub-selects, which may ask for a key of another one.
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND o.ord IN (SELECT i.ord FROM item i WHERE due < got)',
    'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND o.ord NOT IN (SELECT i.ord FROM item i WHERE i.ord IS NOT NULL)',
    'SELECT o.*, i.due FROM bill o LEFT JOIN item i ON i.ord = o.ord AND i.sup > 10 WHERE day < ''2024-01-06'' AND i.ord IS NULL',
    'SELECT kind, count(*) FROM bill o WHERE day < ''2024-01-09'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup) AND NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup AND due < got) GROUP BY 1',
    'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup) AND o.ord IN (SELECT i.ord FROM item i WHERE due < got)',
    'SELECT p.kind, o.kind, o.ord FROM bill o LEFT JOIN bill p ON p.wide = o.wide AND EXISTS (SELECT FROM item i WHERE i.ord = p.ord) WHERE o.day < ''2024-01-06''',
    'SELECT n.ord FROM nothing n WHERE EXISTS (SELECT FROM item i WHERE i.ord = n.ord)',
    'SELECT o.* FROM bill o WHERE day < ''2024-01-06'' AND NOT EXISTS (SELECT FROM nothing n WHERE n.ord = o.ord)',
    'SELECT DISTINCT kind FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord)',
    'SELECT DISTINCT ON (kind) kind, o.ord FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord) ORDER BY kind, o.ord, sup',
    'SELECT o.ord, sup FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord) ORDER BY o.ord, sup LIMIT 5',
    'SELECT count(*), sum(fee), max(code) FROM bill o WHERE day < ''2024-01-06'' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord)']) AS query;

-- More rows than memory: the large table is read once for each part of them.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE FUNCTION pg_temp.batches(query text) RETURNS boolean LANGUAGE sql AS $$
    SELECT (plan ->> 'Batches')::int > 1 AND (plan ->> 'Small Side Memory')::int < 200 FROM (SELECT pg_temp.analyzed(query) -> 'Plan' AS plan) x $$;
SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT pg_temp.batches('SELECT kind, count(*) FROM bill o WHERE EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup) GROUP BY 1'),
    pg_temp.batches('SELECT kind, count(*) FROM bill o WHERE NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup) GROUP BY 1');
SELECT pg_temp.same('SELECT o.* FROM bill o WHERE EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup)');
SELECT pg_temp.same('SELECT o.* FROM bill o WHERE NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup <> o.sup)');
SELECT pg_temp.same('SELECT kind, count(*) FROM bill o WHERE NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND due < got) GROUP BY 1');
RESET enable_nestloop; RESET enable_mergejoin; RESET work_mem; RESET hash_mem_multiplier;

-- Rescans, parameters, cursors.
SELECT pg_temp.same('SELECT g, x.* FROM generate_series(1, 5) g CROSS JOIN LATERAL (SELECT kind, count(*) FROM bill o WHERE o.sup = g AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup > g) GROUP BY 1) x');
SELECT pg_temp.same('SELECT g, (SELECT count(*) FROM bill o WHERE o.sup = g AND NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord)) FROM generate_series(1, 5) g');
PREPARE of_sup(int, int) AS SELECT count(*), sum(o.ord) FROM bill o WHERE o.sup = $1 AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord AND i.sup > $2);
SET plan_cache_mode = force_generic_plan;
EXECUTE of_sup(3, 10); EXECUTE of_sup(4, 45); EXECUTE of_sup(NULL, 1); EXECUTE of_sup(4, NULL);
RESET plan_cache_mode;
BEGIN;
DECLARE rows NO SCROLL CURSOR FOR SELECT o.ord, o.sup FROM bill o WHERE day = '2024-01-04' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord) ORDER BY 1, 2;
FETCH 2 FROM rows; MOVE 10 IN rows; FETCH 2 FROM rows;
ROLLBACK;
-- Rows that are locked or changed are left to PostgreSQL.
BEGIN;
DELETE FROM bill o WHERE day = '2024-01-04' AND NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord);
SELECT count(*) FROM bill o WHERE day = '2024-01-04' AND NOT EXISTS (SELECT FROM item i WHERE i.ord = o.ord);
SELECT count(*) FROM (SELECT FROM bill o WHERE day = '2024-01-04' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord) FOR UPDATE OF o) x;
ROLLBACK;

-- Row-level security and barriers of both tables apply.
CREATE ROLE regress_exists_large;
GRANT USAGE ON SCHEMA exists_large TO regress_exists_large;
GRANT SELECT ON item, bill, item_heap, bill_heap TO regress_exists_large;
CREATE VIEW late WITH (security_barrier) AS SELECT * FROM item WHERE due < got;
GRANT SELECT ON late TO regress_exists_large;
ALTER TABLE item ENABLE ROW LEVEL SECURITY; ALTER TABLE bill ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON item TO regress_exists_large USING (sup < 9);
CREATE POLICY few ON bill TO regress_exists_large USING (kind = 'a');
SET ROLE regress_exists_large;
SELECT kind, count(*) FROM bill o WHERE day < '2024-01-06' AND EXISTS (SELECT FROM item i WHERE i.ord = o.ord) GROUP BY 1;
SELECT count(*) FROM bill_heap o WHERE kind = 'a' AND day < '2024-01-06' AND EXISTS (SELECT FROM item_heap i WHERE i.ord = o.ord AND i.sup < 9);
SELECT kind, count(*) FROM bill o WHERE day < '2024-01-06' AND NOT EXISTS (SELECT FROM late i WHERE i.ord = o.ord) GROUP BY 1;
SELECT count(*) FROM bill_heap o WHERE kind = 'a' AND day < '2024-01-06' AND NOT EXISTS (SELECT FROM item_heap i WHERE i.ord = o.ord AND due < got);
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA exists_large CASCADE;
DROP ROLE regress_exists_large;

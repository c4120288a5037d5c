-- EXCEPT, INTERSECT and UNION of tables whose rows are mostly distinct: joins by vectors.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA set_difference; SET search_path = set_difference;
CREATE TABLE ta (id int NOT NULL, b bigint NOT NULL, s smallint NOT NULL, k text NOT NULL, v varchar(20) NOT NULL, x float8 NOT NULL, r real NOT NULL, ts timestamptz NOT NULL, day date NOT NULL, u uuid NOT NULL, n numeric NOT NULL, flag bool NOT NULL);
INSERT INTO ta SELECT i, i * 1000003::bigint, i % 30000, 'k' || i, 'v' || i, CASE i WHEN 1 THEN 'NaN' WHEN 2 THEN 0 ELSE i / 7.0 END, i, '2024-01-01'::timestamptz + i * interval '1 s', '2024-01-01'::date + i, md5(i::text)::uuid, i, i % 2 = 0
    FROM generate_series(1, 5000) i;
INSERT INTO ta SELECT * FROM ta WHERE id < 300;
CREATE TABLE tb (LIKE ta);
INSERT INTO tb SELECT id + 4000, b, s, k, v, CASE id WHEN 2 THEN -0.0 ELSE x END, r, ts, day, u, n, flag FROM ta WHERE id % 3 <> 0 OR id < 3;
CREATE TABLE tc AS SELECT CASE WHEN id % 11 <> 0 THEN id END AS id, CASE WHEN id % 7 <> 0 THEN k END AS k, id AS place FROM ta;
CREATE TABLE td AS SELECT CASE WHEN place % 77 <> 0 THEN id END AS id, k, place FROM tc WHERE place % 5 <> 0;
CREATE TABLE ta_heap USING heap AS SELECT * FROM ta; CREATE TABLE tb_heap USING heap AS SELECT * FROM tb; CREATE TABLE tc_heap USING heap AS SELECT * FROM tc; CREATE TABLE td_heap USING heap AS SELECT * FROM td;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'ta|tb|tc|td';
EXPLAIN (COSTS OFF) SELECT k, x FROM ta WHERE id > 10 EXCEPT SELECT k, x FROM tb WHERE flag;
EXPLAIN (COSTS OFF) SELECT id, k FROM tc INTERSECT SELECT id, k FROM td;
EXPLAIN (COSTS OFF) SELECT id FROM ta UNION SELECT id FROM tb ORDER BY 1 LIMIT 3;
-- Columns that are NOT NULL, of each type that a join has for a key, and of others.
SELECT pg_temp.same(format('SELECT %1$s FROM ta WHERE id > 1 %2$s SELECT %1$s FROM tb WHERE s < 20000', columns, operation))
    FROM unnest(ARRAY['EXCEPT', 'INTERSECT', 'UNION']) operation, unnest(ARRAY['id', 'b, s', 'k', 'v', 'x', 'r, x', 'ts', 'day, id', 'u, k', 'n', 'flag, id', 'id + 1', 'id, 5', 'id, b, s, k, v, x, r, ts, day, u']) columns;
SELECT pg_temp.same(format('SELECT id FROM ta %s SELECT id FROM tb', operation)) FROM unnest(ARRAY['EXCEPT ALL', 'INTERSECT ALL', 'UNION ALL']) operation;
-- NULL equals NULL.
SELECT pg_temp.same(format('SELECT %1$s FROM tc %2$s SELECT %1$s FROM td', columns, operation))
    FROM unnest(ARRAY['EXCEPT', 'INTERSECT', 'UNION']) operation, unnest(ARRAY['id', 'k', 'id, k', 'place, id', 'k, place']) columns;
SELECT pg_temp.same(format('SELECT %s FROM ta %s SELECT %s FROM td', pair[1], operation, pair[2]))
    FROM unnest(ARRAY['EXCEPT', 'INTERSECT', 'UNION']) operation, (VALUES (ARRAY['id, k', 'id, k']), (ARRAY['id', 'place']), (ARRAY['b', 'id'])) pairs (pair);
SELECT pg_temp.same(format('SELECT %s FROM td %s SELECT %s FROM ta', pair[1], operation, pair[2]))
    FROM unnest(ARRAY['EXCEPT', 'INTERSECT', 'UNION']) operation, (VALUES (ARRAY['id, k', 'id, k']), (ARRAY['place', 'id'])) pairs (pair);
-- Operations within others, in sub-selects and with parameters of outer queries.
SELECT pg_temp.same(query) FROM unnest(ARRAY[
    'SELECT count(*), sum(id), count(k) FROM (SELECT id, k FROM tc EXCEPT SELECT id, k FROM td) q',
    'SELECT id FROM ta EXCEPT SELECT id FROM tb EXCEPT SELECT place FROM td',
    'SELECT id FROM ta EXCEPT (SELECT id FROM tb INTERSECT SELECT place FROM td)',
    '(SELECT id FROM ta UNION SELECT id FROM tb) INTERSECT SELECT id FROM tc',
    'SELECT id FROM ta UNION SELECT id FROM tb UNION SELECT id FROM tc UNION ALL SELECT place FROM td',
    'SELECT id FROM ta EXCEPT SELECT id FROM tb UNION ALL SELECT id FROM tc INTERSECT SELECT id FROM td',
    'SELECT id, k FROM ta EXCEPT SELECT id, k FROM ta WHERE id % 2 = 0',
    'WITH q AS (SELECT id FROM ta EXCEPT SELECT id FROM tb) SELECT * FROM q UNION SELECT id + 1 FROM q',
    'SELECT z, (SELECT count(*) FROM (SELECT id FROM ta WHERE id < z EXCEPT SELECT place FROM td WHERE place > z - 50) q) FROM unnest(ARRAY[100, 200]) z',
    'SELECT z, n FROM unnest(ARRAY[100, 200]) z, LATERAL (SELECT count(*) AS n FROM (SELECT id, k FROM tc WHERE place < z UNION SELECT id, k FROM td WHERE place > 4900 + z / 2) q) r',
    'SELECT ta.id FROM ta JOIN (SELECT id FROM ta INTERSECT SELECT id FROM tb) q ON q.id = ta.id',
    'SELECT id FROM ta WHERE id IN (SELECT id FROM tb EXCEPT SELECT place FROM td)',
    'SELECT id AS one, k AS two FROM ta EXCEPT SELECT place, k FROM td ORDER BY two DESC, one LIMIT 20 OFFSET 3'
    ]) query;
-- What has effects, or may differ each time, is evaluated once.
SELECT pg_temp.nodes('SELECT id FROM ta WHERE random() < 2 EXCEPT SELECT id FROM tb');
PREPARE some_ids(int) AS SELECT count(*) FROM (SELECT id FROM ta WHERE id < $1 EXCEPT SELECT id FROM tb) q;
EXECUTE some_ids(1000); EXECUTE some_ids(4500);
CREATE VIEW without AS SELECT id, k FROM ta EXCEPT SELECT id, k FROM tb;
SELECT count(*), min(id) FROM without;
-- Operands that do not fit into memory, by the statistics and not.
SET work_mem = '64kB';
CREATE TABLE te (id int NOT NULL) WITH (autovacuum_enabled = off);
INSERT INTO te SELECT i FROM generate_series(1, 3000) i;
ANALYZE te;
INSERT INTO te SELECT i FROM generate_series(3001, 60000) i;
SELECT count(*) FROM (SELECT id FROM ta EXCEPT SELECT id FROM te WHERE id > 100) q;
SELECT count(*) FROM (SELECT id FROM te EXCEPT SELECT id FROM te WHERE id > 100) q;
ANALYZE te;
SELECT pg_temp.nodes('SELECT id FROM ta EXCEPT SELECT id FROM te'), pg_temp.nodes('SELECT id FROM te EXCEPT SELECT id FROM ta');
SELECT pg_temp.nodes('SELECT id FROM ta UNION SELECT id FROM te'), pg_temp.nodes('SELECT id FROM te UNION SELECT id FROM ta');
SELECT count(*), sum(id) FROM (SELECT id FROM ta UNION SELECT id FROM te WHERE id > 4000) q;
SELECT count(*), sum(id) FROM (SELECT id FROM te WHERE id > 4000 UNION SELECT id FROM ta) q;
RESET work_mem;
-- Privileges are those of the query.
CREATE ROLE difference_reader;
GRANT USAGE ON SCHEMA set_difference TO difference_reader;
GRANT SELECT (id) ON ta TO difference_reader;
SET ROLE difference_reader;
SELECT count(*) FROM (SELECT id FROM ta EXCEPT SELECT id FROM tb) q;
RESET ROLE;
GRANT SELECT (id) ON tb TO difference_reader;
SET ROLE difference_reader;
SELECT count(*) FROM (SELECT id FROM ta EXCEPT SELECT id FROM tb) q;
SELECT count(*) FROM (SELECT k FROM ta EXCEPT SELECT k FROM tb) q;
RESET ROLE;
ALTER TABLE tb ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON tb USING (s < 100);
SET ROLE difference_reader;
SELECT count(*) FROM (SELECT id FROM ta EXCEPT SELECT id FROM tb) q;
RESET ROLE;
SET client_min_messages = warning;
DROP OWNED BY difference_reader; DROP ROLE difference_reader;
DROP SCHEMA set_difference CASCADE;

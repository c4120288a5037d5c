-- Snowflakes: a lanes table joined with small sides, some of which are joined by a key over another
-- side's columns.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA snowflake; SET search_path = snowflake;
CREATE TABLE reading (ts timestamptz, series int, kind int2, value float8) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 minutes', s, (s + i) % 7,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (s * i) % 97 END
    FROM generate_series(1, 40) s, generate_series(1, 60) i;
CREATE TABLE other (ts timestamptz, series int, value float8) WITH (order_by = 'series, ts');
INSERT INTO other SELECT ts, series + 100, value + 1 FROM reading WHERE series % 9 > 0;
SELECT lanes.seal('reading'), lanes.seal('other');
-- Open rows, NULL keys, duplicates and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts, CASE WHEN series % 5 = 0 THEN NULL ELSE series END, NULLIF(kind, 3), value FROM reading WHERE series <= 8;
INSERT INTO other SELECT ts, series, -value FROM other WHERE series < 104;
INSERT INTO other VALUES (NULL, 103, 7), ('2024-01-01 00:10', NULL, 8);
DELETE FROM reading WHERE series % 13 = 0;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE other_heap USING heap AS SELECT * FROM other;
CREATE TABLE device (id int, host text, code varchar, number int8, weight float8, real real, day date, mark uuid, price numeric, info jsonb) USING heap;
INSERT INTO device SELECT i, CASE WHEN i % 6 > 0 THEN 'h' || i % 12 END, 'h' || i % 12, i % 8, CASE i % 4 WHEN 0 THEN float8 'NaN' WHEN 1 THEN float8 '-0' ELSE i / 8.0 END, i / 8.0::real, date '2024-01-01' + i % 5,
        lpad(to_hex(i % 9), 32, '0')::uuid, i % 3, jsonb_build_object('host', 'h' || i % 10)
    FROM generate_series(1, 36) i;
-- Some ids occur twice, with other hosts, of which some have an owner and some have none.
INSERT INTO device SELECT id, 'x' || id, 'h1', number, NULL, NULL, NULL, NULL, NULL, NULL FROM device WHERE id % 7 = 0;
INSERT INTO device SELECT id, 'h2', 'x', number + 1, 0, 1, day, mark, price, '{"host": "h3"}' FROM device WHERE id % 7 = 0;
INSERT INTO device VALUES (NULL, 'h3', 'h3', 3, 3, 3, '2024-01-03', NULL, 1, NULL);
CREATE TABLE owner (host text, code varchar, number int, weight float8, day date, mark uuid, price numeric, person text) USING heap;
INSERT INTO owner SELECT 'h' || i % 8, 'h' || i % 5, i % 6, CASE i % 5 WHEN 0 THEN float8 'NaN' WHEN 1 THEN 0 ELSE i / 8.0 END, date '2024-01-01' + i % 4, lpad(to_hex(i % 5), 32, '0')::uuid, i % 4, 'p' || i % 4
    FROM generate_series(1, 14) i;
INSERT INTO owner VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'nobody'), ('h99', 'h99', 99, 99, NULL, NULL, 99, 'far');
CREATE TABLE person (name text, team text) USING heap;
INSERT INTO person VALUES ('p0', 'red'), ('p1', 'red'), ('p1', 'blue'), ('p3', NULL), (NULL, 'grey');
CREATE TABLE place (id int, info jsonb) USING heap;
INSERT INTO place SELECT i + 100, jsonb_build_object('host', 'h' || i % 10, 'room', i % 3) FROM generate_series(1, 38) i;
CREATE TABLE crowd (host text, payload text) USING heap;
INSERT INTO crowd SELECT 'h' || i % 70, repeat('x', 40) || i FROM generate_series(1, 2000) i;
CREATE TABLE empty (host text, id int) USING heap;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading|other|note';
-- PostgreSQL joins the small sides with each other first where that is possible. This setting makes
-- it join in the order of the query.
SET join_collapse_limit = 1;
EXPLAIN (COSTS OFF) SELECT o.person, count(*), avg(r.value) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host GROUP BY 1;
-- Outer joins keep the order of the query: the key is over the previous side, which may have no
-- row.
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, o.person FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host');
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, o.person FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host');
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, o.person FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = coalesce(d.host, ''h2'')');
SELECT pg_temp.same('SELECT r.ts, o.person, p.team FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host LEFT JOIN person p ON p.name = o.person');
SELECT pg_temp.same('SELECT r.ts, d.host, o.person, e.id FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host LEFT JOIN empty e ON e.host = d.host');
-- Keys of all types, of two types, and of an expression.
SELECT pg_temp.same('SELECT d.code, o.person, count(*), sum(r.value) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.code = d.code GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.code, o.person, count(*), sum(r.value) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.code GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.number, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.number = d.number GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.weight, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.weight = d.weight GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.real, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.weight = d.real GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.day, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.day = d.day GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.mark, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.mark = d.mark GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.id, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = ''h'' || (d.id + 1) % 5 AND o.number = d.number GROUP BY 1, 2');
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.info ->> ''host'' AND o.number = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host COLLATE "C" = d.host COLLATE "C" GROUP BY 1');
-- Keys that are left to PostgreSQL: other types and collations, a key over two sides, a volatile
-- one.
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.price = d.price GROUP BY 1');
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.day = d.day::timestamp GROUP BY 1');
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.number = d.id % 5 + r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT p.team, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host LEFT JOIN person p ON p.name = o.person || d.host GROUP BY 1');
-- Semi and anti joins by such keys.
SELECT pg_temp.same('SELECT r.ts, d.host FROM reading r LEFT JOIN device d ON d.id = r.series WHERE EXISTS (SELECT FROM owner o WHERE o.host = d.host AND o.number = r.kind)');
SELECT pg_temp.same('SELECT r.ts, d.host FROM reading r LEFT JOIN device d ON d.id = r.series WHERE NOT EXISTS (SELECT FROM owner o WHERE o.host = d.host)');
SELECT pg_temp.same('SELECT d.host, count(*) FROM reading r JOIN device d ON d.id = r.series WHERE NOT EXISTS (SELECT FROM owner o WHERE o.host = d.host AND o.number = r.kind) GROUP BY 1');
-- Inner joins: keys over the lanes table and over another side, where a small row has no match and
-- the next one with its key has one.
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, o.person FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host AND o.number = r.kind');
SELECT pg_temp.same('SELECT d.host, o.person, count(*), sum(r.value), max(o.weight) FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host AND o.number = r.kind GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.id, o.person, p.team, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host AND o.number = r.kind JOIN person p ON p.name = o.person GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, o.person FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host LEFT JOIN person p ON p.name = o.person');
SELECT pg_temp.same('SELECT d.host, o.person, count(*) FROM reading r JOIN device d ON d.number = r.kind JOIN owner o ON o.host = d.host AND o.number = r.series GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.host, count(c.payload) FROM reading r JOIN owner o ON o.number = r.kind JOIN device d ON d.id = r.series AND d.host = o.host JOIN crowd c ON c.host = d.host GROUP BY 1');
RESET join_collapse_limit;
SELECT pg_temp.same('SELECT r.ts, o.person FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host AND o.number = r.kind');
SET join_collapse_limit = 1;
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN device d ON d.id = r.series JOIN empty e ON e.host = d.host AND e.id = r.kind');
RESET join_collapse_limit;
-- Two lanes tables, each with its own labels, joined by time and label: samples, values and groups of both.
EXPLAIN (COSTS OFF) SELECT d.info ->> 'host', count(*) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> 'host' = d.info ->> 'host' GROUP BY 1;
SET join_collapse_limit = 1;
SELECT pg_temp.same('SELECT r.ts, r.value, s.value AS other, p.id FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host'' WHERE r.series < 9');
SELECT pg_temp.same('SELECT date_trunc(''hour'', r.ts) AS hour, d.info ->> ''host'' AS host, p.info ->> ''room'' AS room, count(*), sum(r.value - s.value), max(s.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host'' GROUP BY 1, 2, 3');
EXPLAIN (COSTS OFF) SELECT s.ts, p.info ->> 'host' AS host, count(*) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> 'host' = d.info ->> 'host' GROUP BY 1, 2;
SELECT pg_temp.same('SELECT s.ts, p.info ->> ''host'' AS host, count(*), sum(r.value - s.value), max(s.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host'' GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.host, p.info, count(*), count(s.value) FROM (reading r JOIN device d ON d.id = r.series) LEFT JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host'' AND s.value > 0 GROUP BY 1, 2');
SELECT pg_temp.same('SELECT count(*), sum(r.value), sum(s.value) FROM reading r JOIN other s ON s.ts = r.ts AND s.series = r.series + 100');
SELECT pg_temp.same('SELECT r.series, count(*), min(s.value) FROM reading r JOIN other s ON s.ts = r.ts WHERE r.series < 5 AND s.series < 110 GROUP BY 1');
SELECT pg_temp.same('SELECT count(*), sum(r.value), sum(s.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host'' AND s.value = r.value');
-- Small sides that are scans or joins of the extension: their columns of all types, NULLs of outer
-- joins, rows that do not come from a table, and keys and groups by values that many of their rows
-- share.
CREATE TABLE note (ts timestamptz, series int, body text, mark uuid, flag bool, price numeric);
INSERT INTO note SELECT ts, series - 100, CASE WHEN series % 3 > 0 THEN 'note ' || series % 7 END, lpad(to_hex(series % 9), 32, '0')::uuid, series % 2 = 0, value::numeric / 3 FROM other;
SELECT lanes.seal('note');
INSERT INTO note SELECT ts, series, 'open', NULL, NULL, NULL FROM note WHERE series = 4;
CREATE TABLE note_heap USING heap AS SELECT * FROM note;
ANALYZE note, note_heap;
SELECT pg_temp.same('SELECT r.ts, n.* FROM reading r JOIN note n ON n.ts = r.ts AND n.series = r.series');
SELECT pg_temp.same('SELECT n.body, n.mark, n.flag, count(*), sum(r.value) FROM reading r JOIN note n ON n.ts = r.ts AND n.series = r.series GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT count(*), sum(r.value) FROM reading r WHERE EXISTS (SELECT FROM note n WHERE n.ts = r.ts AND n.series = r.series AND n.flag)');
SELECT pg_temp.same('SELECT count(*), sum(r.value) FROM reading r WHERE NOT EXISTS (SELECT FROM note n WHERE n.ts = r.ts AND n.series = r.series)');
SELECT pg_temp.same('SELECT r.ts, r.series, n.body, d.info FROM reading r JOIN (note n LEFT JOIN device d ON d.mark = n.mark AND d.id < 20) ON n.ts = r.ts AND n.series = r.series');
SELECT pg_temp.same('SELECT d.info, upper(d.host) AS host, n.body, count(*), count(d.id) FROM reading r JOIN (note n LEFT JOIN device d ON d.mark = n.mark AND d.id < 20) ON n.ts = r.ts AND n.series = r.series GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT d.id, d.host, n.body, r.value FROM reading r JOIN (device d LEFT JOIN note n ON d.id = n.series AND n.flag) ON d.id = r.series AND d.number = r.kind');
SELECT pg_temp.same('SELECT r.ts, n.body, o.person, p.team FROM reading r JOIN (note n JOIN owner o ON o.mark = n.mark LEFT JOIN person p ON p.name = o.person) ON n.ts = r.ts AND n.series = r.series WHERE r.series < 7');
SELECT pg_temp.same('SELECT v.n, x.* FROM (VALUES (1), (4), (NULL)) v(n), LATERAL (SELECT d.host, count(*), max(n.series) FROM reading r JOIN (note n JOIN device d ON d.id = n.series AND d.number > v.n) ON n.ts = r.ts AND n.series = r.series WHERE n.series > v.n GROUP BY 1) x');
SET plan_cache_mode = force_generic_plan;
PREPARE noted(int) AS SELECT d.host, count(*), max(n.series) FROM reading r JOIN (note n JOIN device d ON d.id = n.series AND d.number > $1) ON n.ts = r.ts AND n.series = r.series WHERE n.series > $1 GROUP BY 1 ORDER BY 1;
EXECUTE noted(5); EXECUTE noted(6); EXECUTE noted(NULL);
RESET plan_cache_mode;
-- Rows that are passed as vectors are counted, also below a projection.
CREATE FUNCTION pg_temp.counted(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.explained(query, 'actual|Small Side Rows') $$;
SELECT pg_temp.counted('SELECT count(*), max(n.series) FROM reading r JOIN note n ON n.ts = r.ts AND n.series = r.series');
SELECT pg_temp.counted('SELECT d.host, count(*) FROM reading r JOIN (note n JOIN device d ON d.id = n.series) ON n.ts = r.ts AND upper(d.host) = ''H'' || r.kind AND n.series + 1 = r.series GROUP BY 1');
-- Parameters, generic plans, rescans, cursors.
SET plan_cache_mode = force_generic_plan;
PREPARE owned(int, text) AS SELECT o.person, count(*), sum(r.value) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = coalesce(d.host, $2) AND o.number = r.kind WHERE r.series > $1 GROUP BY 1 ORDER BY 1;
EXECUTE owned(30, 'h1'); EXECUTE owned(36, 'h2'); EXECUTE owned(36, NULL);
RESET plan_cache_mode;
SELECT pg_temp.same('SELECT v.n, x.* FROM (VALUES (1), (2), (NULL)) v(n), LATERAL (SELECT o.person, count(*) AS c FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.number = d.number + v.n WHERE r.kind > v.n GROUP BY 1) x');
SELECT pg_temp.same('SELECT v.n, (SELECT sum(o.number + r.kind) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host WHERE r.kind = v.n) FROM generate_series(1, 9) v(n)');
BEGIN;
DECLARE rows NO SCROLL CURSOR FOR SELECT r.ts, r.series, o.person FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host WHERE r.series IN (3, 7) ORDER BY 2, 1, 3;
FETCH 2 FROM rows; MOVE 150 IN rows; FETCH 2 FROM rows;
ROLLBACK;
SELECT count(*) FROM (SELECT r.ts FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host LIMIT 5) x;
-- An expression that fails.
SELECT pg_temp.same('SELECT count(*) FROM reading r LEFT JOIN device d ON d.id = r.series AND d.id <> 5 LEFT JOIN owner o ON o.number = 10 / (d.id - 5)');
SELECT pg_temp.same('SELECT count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.number = 10 / (d.id - 5)');
-- Small sides that exceed their memory: PostgreSQL's own plan takes over while the node runs.
CREATE FUNCTION crowded() RETURNS SETOF crowd LANGUAGE plpgsql STABLE ROWS 10 AS 'BEGIN RETURN QUERY SELECT * FROM crowd; END';
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT pg_temp.same('SELECT d.host, count(*), max(c.payload) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN crowded() c ON c.host = d.host GROUP BY 1');
SELECT pg_temp.same('SELECT r.ts, d.host, c.payload FROM reading r JOIN device d ON d.id = r.series LEFT JOIN crowded() c ON c.host = d.host WHERE r.series < 3');
SELECT pg_temp.same('SELECT count(*), sum(r.value), sum(s.value) FROM reading r JOIN other s ON s.ts = r.ts AND s.series = r.series + 100');
SELECT pg_temp.same('SELECT count(*), max(s.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (other s JOIN place p ON p.id = s.series) ON s.ts = r.ts AND p.info ->> ''host'' = d.info ->> ''host''');
SELECT pg_temp.same('SELECT r.ts, r.series, d.host, n.body, n.price FROM (reading r JOIN device d ON d.id = r.series) LEFT JOIN person p ON p.name = d.host JOIN note n ON n.ts = r.ts AND n.series = d.id');
SELECT pg_temp.same('SELECT d.host, upper(n.body) AS body, count(*), sum(r.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (note n JOIN owner o ON o.mark = n.mark) ON n.ts = r.ts AND n.series = d.id GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.info, o.person, count(*) FROM reading r JOIN (note n JOIN device d ON d.id = n.series JOIN owner o ON o.host = d.host) ON n.ts = r.ts AND n.series = r.series GROUP BY 1, 2');
CREATE FUNCTION pg_temp.batches(query text) RETURNS boolean LANGUAGE sql AS $$
    SELECT plan #>> '{Plan,Batches}' > '1' AND plan #>> '{Plan,Custom Plan Provider}' = 'LanesAggregate' FROM pg_temp.analyzed(query) plan $$;
SELECT pg_temp.batches('SELECT count(*), sum(r.value) FROM (reading r JOIN device d ON d.id = r.series) JOIN (note n JOIN owner o ON o.mark = n.mark) ON n.ts = r.ts AND n.series = d.id');
RESET work_mem; RESET hash_mem_multiplier;
-- Privileges and row-level security of the tables apply.
CREATE ROLE regress_snowflake;
GRANT USAGE ON SCHEMA snowflake TO regress_snowflake;
GRANT SELECT (series, kind) ON reading TO regress_snowflake;
GRANT SELECT (id, host) ON device TO regress_snowflake;
GRANT SELECT (host, person) ON owner TO regress_snowflake;
SET ROLE regress_snowflake;
SELECT o.person, count(*) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host WHERE r.series < 4 GROUP BY 1 ORDER BY 1;
SELECT o.person, count(*) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.code GROUP BY 1;
SELECT o.person, count(*) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.code = d.host GROUP BY 1;
RESET ROLE;
ALTER TABLE device ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON device TO regress_snowflake USING (id < 3);
ALTER TABLE owner ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON owner TO regress_snowflake USING (person <> 'p1');
SET ROLE regress_snowflake;
SELECT d.id, o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON o.host = d.host GROUP BY 1, 2 ORDER BY 1, 2;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA snowflake CASCADE;
DROP ROLE regress_snowflake;

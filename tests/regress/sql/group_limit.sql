-- Groups that ORDER BY and LIMIT can return, and groups of which there are many.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA group_limit; SET search_path = group_limit;
CREATE TABLE m (id int, a int8, b int, c int2, d date, s text COLLATE "C", u uuid, t bool, f float8, r float4, n int8);
INSERT INTO m SELECT i, (i::int8 * 7919 % 30011) * 1000003, i % 7 - 3, i % 300, date '2024-01-01' + i % 50, 's' || i % 900, md5((i % 40)::text)::uuid, i % 3 = 0,
    CASE WHEN i % 17 > 0 THEN (i % 1000 + 1) / 8.0 END, i % 33, i::int8 * 123456789 FROM generate_series(1, 60000) i;
SELECT lanes.seal('m') > 0 AS sealed;
INSERT INTO m SELECT i, CASE WHEN i % 2 = 0 THEN i END, NULL, i % 5, NULL, NULL, NULL, NULL, (ARRAY['NaN', '-0', 'Infinity', '-Infinity']::float8[])[i % 4 + 1], 'NaN', NULL FROM generate_series(1, 50) i;
DELETE FROM m WHERE id % 1000 = 7;
CREATE TABLE m_heap USING heap AS SELECT * FROM m;
CREATE TABLE dim (c int, label text) USING heap;
INSERT INTO dim SELECT i, 'l' || i % 20 FROM generate_series(0, 250) i;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'm';
-- Returns the limits of the plan's nodes, and whether the rows come in heap's order.
CREATE FUNCTION pg_temp.limited(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; limits text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        limits := limits || coalesce('[' || substring(line FROM 'Group Limit: (.*)') || '] ', '');
    END LOOP;
    RETURN limits || pg_temp.same_order(query, 'Custom Scan \(LanesAggregate\)');
END $$;

-- Keys and results in both directions; NULL and NaN.
SELECT pg_temp.limited('SELECT a, count(*) FROM m GROUP BY a ORDER BY 2 DESC, 1 LIMIT 10');
SELECT pg_temp.limited('SELECT a, count(*) FROM m GROUP BY a ORDER BY a NULLS FIRST LIMIT 3');
-- Groups in the order of their only sort key need no limit.
SELECT pg_temp.limited('SELECT a, count(*) FROM m GROUP BY a ORDER BY a DESC LIMIT 3 OFFSET 5');
SELECT pg_temp.limited('SELECT b, c, count(f), max(f) FROM m GROUP BY b, c ORDER BY max(f) DESC NULLS LAST, count(f), b, c LIMIT 20');
SELECT pg_temp.limited('SELECT c, min(f) FROM m GROUP BY c ORDER BY min(f), c DESC LIMIT 7');
SELECT pg_temp.limited('SELECT c, d, sum(r), bool_or(t) FROM m GROUP BY c, d ORDER BY bool_or(t) DESC, sum(r) DESC, d, c LIMIT 9');
SELECT pg_temp.limited('SELECT d, sum(f), avg(f) FROM m GROUP BY d ORDER BY avg(f), d LIMIT 4');
-- Numerics are compared by doubles: what lies next to the last one is kept, and later keys decide.
SELECT pg_temp.limited('SELECT a, avg(c), sum(n) FROM m GROUP BY a ORDER BY avg(c) DESC, a LIMIT 10');
SELECT pg_temp.limited('SELECT c, sum(n) FROM m GROUP BY c ORDER BY sum(n), c LIMIT 10');
SELECT pg_temp.limited('SELECT c, avg(b) FROM m GROUP BY c ORDER BY avg(b) DESC, c DESC LIMIT 10');
-- Groups that are equal by the keys before a text are all kept; ties are kept.
SELECT pg_temp.limited('SELECT s, c, count(*) FROM m GROUP BY s, c ORDER BY count(*) DESC, s DESC NULLS LAST, c LIMIT 10');
SELECT pg_temp.limited('SELECT u, count(*) FROM m GROUP BY u ORDER BY count(*), u LIMIT 10');
SELECT pg_temp.same('SELECT b, c, count(*) FROM m GROUP BY b, c ORDER BY count(*) DESC FETCH FIRST 3 ROWS WITH TIES');
SELECT pg_temp.same('SELECT count(*) FROM (SELECT b, c, count(*) FROM m GROUP BY b, c ORDER BY count(*) DESC LIMIT 700) q');
-- Distinct rows, joins.
SELECT pg_temp.limited('SELECT DISTINCT a, c FROM m ORDER BY a DESC NULLS LAST, c LIMIT 10');
SELECT pg_temp.limited('SELECT label, b, sum(id) FROM m JOIN dim USING (c) GROUP BY label, b ORDER BY sum(id) DESC, b, label LIMIT 6');
-- No limit: conditions on groups, windows, limits that are not constants, a first key without ranks.
SELECT pg_temp.limited('SELECT a, count(*) FROM m GROUP BY a HAVING count(*) > 1 ORDER BY 2 DESC, 1 LIMIT 10');
SELECT pg_temp.limited('SELECT c, count(*), sum(count(*)) OVER () FROM m GROUP BY c ORDER BY 2 DESC, 1 LIMIT 10');
SELECT pg_temp.limited('SELECT c, count(*) FROM m GROUP BY c ORDER BY 2 DESC, 1 LIMIT (SELECT 5)');
SELECT pg_temp.limited('SELECT s, count(*) FROM m GROUP BY s ORDER BY s LIMIT 5');
SELECT pg_temp.limited('SELECT c, stddev(b) FROM m GROUP BY c ORDER BY stddev(b) DESC, c LIMIT 5');
SELECT pg_temp.limited('SELECT DISTINCT count(*) FROM m GROUP BY a, c ORDER BY 1 DESC LIMIT 2');
-- Many groups by keys of all kinds, in memory and in parts.
CREATE FUNCTION pg_temp.many() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE query text;
BEGIN
    FOREACH query IN ARRAY ARRAY[
        'SELECT a, count(*), sum(id), avg(c), min(f) FROM m GROUP BY a',
        'SELECT a, b, count(*), sum(id), max(f) FROM m GROUP BY a, b',
        'SELECT id, -id AS less, a, count(*), bool_and(t) FROM m GROUP BY 1, 2, a',
        'SELECT s, a, t, u, count(*), avg(n) FROM m GROUP BY s, a, t, u',
        'SELECT f, r, c, b, count(*) FROM m GROUP BY f, r, c, b',
        'SELECT d, a, date_trunc(''month'', d::timestamp) AS month, count(*) FROM m GROUP BY 1, 2, 3',
        'SELECT c, count(DISTINCT a), count(DISTINCT s), sum(DISTINCT id) FROM m GROUP BY c',
        'SELECT count(DISTINCT a), count(DISTINCT f) FROM m',
        'SELECT count(*), sum(q.n) FROM (SELECT a, b, count(*) AS n FROM m GROUP BY a, b) q',
        'SELECT b, count(*) FROM (SELECT DISTINCT a, b, u FROM m) q GROUP BY b',
        'SELECT a, b, count(*) FROM m GROUP BY a, b ORDER BY count(*) DESC, a, b LIMIT 30'] LOOP
        RETURN NEXT pg_temp.same(query);
    END LOOP;
END $$;
SELECT pg_temp.many();
SET work_mem = '256kB';
SELECT pg_temp.many();
RESET work_mem;
SET client_min_messages = warning;
DROP SCHEMA group_limit CASCADE;

-- Groups in the order of a key: ordered groups need no sort, and have the order of PostgreSQL's own
-- plan.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA group_order; SET search_path = group_order;
CREATE TABLE m (ts timestamptz, day date, n int, small int2, name text, value float8) WITH (order_by = 'name, ts');
INSERT INTO m SELECT timestamptz '2024-01-01' - i * interval '7 s', date '2024-01-01' - i % 40, (i * 7919) % 300 - 150, i % 11 - 5, 'n' || i % 9, i / 8.0
    FROM generate_series(1, 3000) i;
SELECT lanes.seal('m');
-- Open rows: infinite times, NULLs, and times before all others.
INSERT INTO m VALUES ('infinity', 'infinity', 2147483647, 32767, 'z', 1), ('-infinity', '-infinity', -2147483648, -32768, 'a', 2), (NULL, NULL, NULL, NULL, NULL, NULL),
    ('1969-12-31 23:59:59', '1969-12-31', 0, 0, 'old', 'NaN'), ('2024-01-01', '2024-01-01', 1, 1, 'n1', 3);
DELETE FROM m WHERE n % 13 = 0;
CREATE TABLE m_heap USING heap AS SELECT * FROM m;
CREATE TABLE dim (id int, day date, label text) USING heap;
INSERT INTO dim SELECT i - 100, date '2024-01-01' - i % 30, 'l' || i % 4 FROM generate_series(1, 200) i;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'm';
-- Returns the keys of the groups in the order in which the query returns them.
CREATE FUNCTION pg_temp.keys(query text, vectorize text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    PERFORM set_config('lanes.vectorize', vectorize, true);
    EXECUTE 'SELECT count(*) || '' keys '' || md5(string_agg(coalesce(k::text, ''NULL''), '' '')) FROM (' || query || ') x' INTO answer;
    RETURN answer;
END $$;
-- Returns how the groups were ordered, and whether all columns of all rows, and the order of the keys, agree.
CREATE OR REPLACE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE fast text := pg_temp.keys(query, 'on'); plain text := pg_temp.keys(query, 'off'); line text; nodes text := '';
BEGIN
    PERFORM set_config('lanes.vectorize', 'on', true);
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        nodes := nodes || coalesce(substring(line FROM '(?:->  |^ ?)((?:Incremental )?Sort|Custom Scan \(\w+\)|Limit|GroupAggregate)') || ' ', '')
            || coalesce('[' || substring(line FROM 'Group Order: (.*)') || '] ', '');
    END LOOP;
    RETURN nodes || CASE WHEN fast = plain THEN pg_temp.agreement(query) ELSE E'other order than off\n' || fast || E'\n' || plain END;
END $$;
SELECT pg_temp.same('SELECT date_trunc(''hour'', ts) AS k, count(*) FROM m GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT date_trunc(''hour'', ts) AS k, count(*) FROM m GROUP BY 1 ORDER BY 1 DESC');
SELECT pg_temp.same('SELECT floor(extract(epoch FROM ts) / 60) * 60 AS k, sum(value) FROM m GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT floor(extract(epoch FROM ts) / 60) * 60 AS k, name, sum(value) FROM m GROUP BY 1, 2 ORDER BY 1');
SELECT pg_temp.same('SELECT name, floor(extract(epoch FROM ts) / 600) AS k, sum(value) FROM m GROUP BY 2, 1 ORDER BY 2 DESC');
SELECT pg_temp.same('SELECT day AS k, count(*) FROM m GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT n AS k, small, count(*) FROM m GROUP BY 1, 2 ORDER BY n DESC');
SELECT pg_temp.same('SELECT small + 1 AS k, count(*) FROM m WHERE small < 100 GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT DISTINCT n AS k FROM m ORDER BY 1');
SELECT pg_temp.same('SELECT n AS k, count(*) FROM m GROUP BY 1 HAVING count(*) > 8 ORDER BY 1 LIMIT 7');
-- With several keys, the sort only orders the groups of one first key.
SELECT pg_temp.same('SELECT day || name AS k, count(*) FROM m GROUP BY day, name ORDER BY day, name');
-- Other orders than the engine's: NULLs first, texts, floats, and values of a joined table.
SELECT pg_temp.same('SELECT n AS k, count(*) FROM m GROUP BY 1 ORDER BY 1 NULLS FIRST');
SELECT pg_temp.same('SELECT name AS k, count(*) FROM m GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT value AS k, count(*) FROM m GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT count(*) AS k, n FROM m GROUP BY n ORDER BY 1');
SELECT pg_temp.same('SELECT d.day AS k, count(*) FROM m JOIN dim d ON d.id = m.n GROUP BY 1 ORDER BY 1');
SELECT pg_temp.same('SELECT d.id AS k, d.label, count(*) FROM m JOIN dim d ON d.id = m.n GROUP BY 1, 2 ORDER BY 1');
SELECT pg_temp.same('SELECT m.n AS k, d.label, count(*) FROM m JOIN dim d ON d.id = m.n GROUP BY 1, 2 ORDER BY 1 DESC');
-- The input of other nodes, rescans, and a cursor.
SELECT pg_temp.same('SELECT k, sum(c) OVER (ORDER BY k) FROM (SELECT day AS k, count(*) AS c FROM m GROUP BY 1 ORDER BY 1) x ORDER BY k');
SELECT pg_temp.same('SELECT x.k FROM generate_series(1, 3) g, LATERAL (SELECT day AS k, count(*) FROM m WHERE small = g GROUP BY 1 ORDER BY 1 LIMIT 4) x');
BEGIN;
DECLARE keys NO SCROLL CURSOR FOR SELECT n, count(*) FROM m GROUP BY n ORDER BY n;
FETCH 2 FROM keys; MOVE 100 IN keys; FETCH 2 FROM keys;
ROLLBACK;
-- PostgreSQL's own plan that takes over is sorted too.
CREATE TABLE large (n int);
INSERT INTO large SELECT (i * 7919) % 60013 FROM generate_series(1, 60000) i;
ANALYZE large;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET enable_sort = off;
SELECT pg_temp.hands_over('SELECT n, count(*) FROM large GROUP BY n ORDER BY n');
SELECT count(*) FILTER (WHERE n < before) AS out_of_order, count(*) FROM (SELECT n, lag(n, 1, -1) OVER () AS before FROM (SELECT n, count(*) FROM large GROUP BY n ORDER BY n) x) y;
RESET work_mem; RESET hash_mem_multiplier; RESET enable_sort;
SET client_min_messages = warning;
DROP SCHEMA group_order CASCADE;

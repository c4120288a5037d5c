-- PostgreSQL's own plan takes over if groups, or the small side of a join, exceed their memory.
SET default_table_access_method = lanes; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA stand_in; SET search_path = stand_in;
CREATE TABLE many (k text, i int, v float8);
INSERT INTO many SELECT md5(g::text), g, g FROM generate_series(1, 60000) g;
CREATE TABLE small (i int, name text) USING heap;
INSERT INTO small SELECT g, 'n' || g % 10 FROM generate_series(1, 20000) g;
ANALYZE;
CREATE FUNCTION pg_temp.handed_over(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := 'by vectors'; node text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        node := coalesce(node, substring(line FROM 'Custom Scan \((\w+)\)'));
        found := coalesce(substring(line FROM 'Handed Over: (.*)'), found);
    END LOOP;
    RETURN node || ': ' || found;
END $$;

SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
-- Groups.
SELECT pg_temp.handed_over('SELECT k, count(*) FROM many GROUP BY k');
SELECT pg_temp.handed_over('SELECT i % 10, count(*) FROM many GROUP BY 1');
SELECT pg_temp.handed_over('SELECT DISTINCT k FROM many');
SELECT count(*), sum(c), sum(s) FROM (SELECT k, count(*) AS c, sum(v) AS s FROM many GROUP BY k) q;
SELECT count(*), sum(c) FROM (SELECT k || 'x', count(*) AS c, min(i) FROM many GROUP BY k HAVING min(i) > 50000) q;
SELECT count(*) FROM (SELECT DISTINCT k FROM many) q;
SELECT k, count(*) FROM many GROUP BY k ORDER BY k LIMIT 2;
-- Rescans with other parameters, and with the same ones.
SELECT o, (SELECT count(*) FROM (SELECT k, count(*) FROM many WHERE i > o * 20000 GROUP BY k) q) FROM generate_series(0, 3) o;
SELECT count(*) FROM generate_series(1, 2) o LEFT JOIN LATERAL (SELECT k, count(*) FROM many GROUP BY k OFFSET 0) q ON q.count = o;
PREPARE of_more(int) AS SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM many WHERE i > $1 GROUP BY k) q;
SET plan_cache_mode = force_generic_plan;
EXECUTE of_more(10); EXECUTE of_more(59990);
RESET plan_cache_mode;
-- Groups above joins.
CREATE TABLE marks (i int, mark int);
INSERT INTO marks SELECT g, g % 7 FROM generate_series(1, 60000, 30) g;
ANALYZE marks;
SELECT pg_temp.handed_over('SELECT m.k, sum(p.mark) FROM many m LEFT JOIN marks p ON lanes.asof(p.i <= m.i) GROUP BY m.k');
SELECT o, (SELECT sum(s) FROM (SELECT m.k, sum(p.mark) AS s FROM many m LEFT JOIN marks p ON lanes.asof(p.i <= m.i) WHERE m.i > o * 20000 GROUP BY m.k) q) FROM generate_series(0, 2) o;
SELECT pg_temp.handed_over('SELECT m.k, count(*) FROM many m JOIN generate_series(1, 300) g ON g = m.i % 300 GROUP BY m.k');
SELECT o, (SELECT sum(c) FROM (SELECT m.k, count(*) AS c FROM many m JOIN generate_series(1, 300) g ON g = m.i % 300 WHERE m.i > o * 20000 GROUP BY m.k) q) FROM generate_series(0, 2) o;
-- Joins that cannot be divided.
SELECT pg_temp.handed_over('SELECT * FROM many m WHERE EXISTS (SELECT FROM small s WHERE s.i = m.i)');
SELECT pg_temp.handed_over('SELECT count(*) FROM many m WHERE i IN (SELECT i FROM small)');
SELECT pg_temp.handed_over('SELECT count(*) FROM many m WHERE NOT EXISTS (SELECT FROM small s WHERE s.i = m.i)');
SELECT count(*), sum(i) FROM (SELECT m.* FROM many m WHERE EXISTS (SELECT FROM small s WHERE s.i = m.i) OFFSET 0) q;
SELECT count(*), sum(i) FROM many m WHERE i IN (SELECT i FROM small);
SELECT count(*), sum(i) FROM many m WHERE NOT EXISTS (SELECT FROM small s WHERE s.i = m.i);
-- The planner underestimates the rows of the small side.
SELECT pg_temp.handed_over('SELECT m.i, s.name FROM many m LEFT JOIN (SELECT * FROM small WHERE i % 1 = 0 AND i % 2 < 2 AND name || '''' = name) s ON s.i = m.i');
SELECT count(*), count(name), min(name) FROM (SELECT m.i, s.name FROM many m LEFT JOIN (SELECT * FROM small WHERE i % 1 = 0 AND i % 2 < 2 AND name || '' = name) s ON s.i = m.i OFFSET 0) q;
SELECT s.name, count(*) FROM many m LEFT JOIN (SELECT * FROM small WHERE i % 1 = 0 AND i % 2 < 2 AND name || '' = name) s ON s.i = m.i GROUP BY 1 ORDER BY 1;
RESET work_mem;
SELECT pg_temp.handed_over('SELECT k, count(*) FROM many GROUP BY k');
SET client_min_messages = warning;
DROP SCHEMA stand_in CASCADE;

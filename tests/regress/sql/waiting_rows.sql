-- Groups that exceed work_mem: rows of further groups wait in temporary files.
SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC'; SET extra_float_digits = 0;
CREATE SCHEMA waiting; CREATE SCHEMA waiting_heap; SET search_path = waiting;
CREATE TABLE many (id int, k text, u uuid, d float8, b bool, ts timestamptz, n int2) USING lanes;
INSERT INTO many SELECT g, CASE WHEN g % 11 > 0 THEN md5((g % 9000)::text) || repeat('x', g % 3 * 60) END,
  md5((g % 7000)::text)::uuid,
  CASE g % 10 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 0 WHEN 3 THEN -0.0 WHEN 4 THEN 'Infinity' ELSE g % 5000 / 4.0 END,
  CASE g % 3 WHEN 0 THEN true WHEN 1 THEN false END, timestamptz '2026-01-01Z' + g * interval '7 min', g % 300
  FROM generate_series(1, 30000) g;
DELETE FROM many WHERE id % 17 = 0;
CREATE TABLE waiting_heap.many USING heap AS TABLE many;
ANALYZE;
-- A table without statistics, whose groups the planner underestimates.
CREATE TABLE fresh USING lanes WITH (autovacuum_enabled = off) AS TABLE many; CREATE TABLE waiting_heap.fresh USING heap AS TABLE many;
-- Whether a query has the same rows on lanes as on heap; how often PostgreSQL's plan took over; in how many batches.
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; batches int := 1; result text := 'in memory'; same bool; disk int;
BEGIN
    EXECUTE format('CREATE TEMP TABLE of_lanes AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = waiting_heap; SET LOCAL work_mem = '64MB';
    EXECUTE format('CREATE TEMP TABLE of_heap AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = waiting; SET LOCAL work_mem = '64kB';
    SELECT NOT EXISTS ((TABLE of_lanes EXCEPT ALL TABLE of_heap) UNION ALL (TABLE of_heap EXCEPT ALL TABLE of_lanes)) INTO same;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        batches := coalesce(substring(line FROM '^ *(?:Batches|Passes): (\d+)')::int, batches);
        disk := coalesce(substring(line FROM '^ *Disk Usage: (\d+) kB')::int, disk);
        IF line ~ 'Handed Over' THEN result := 'handed over'; END IF;
    END LOOP;
    IF batches > 1 THEN result := 'in batches'; END IF;
    DROP TABLE of_lanes, of_heap;
    RETURN concat_ws(', ', CASE WHEN same THEN 'same' ELSE 'DIFFERENT' END, result, CASE WHEN disk > 0 THEN 'with files' END);
END $$;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1; SET lanes.vectorize = require;
SELECT pg_temp.same('SELECT k, count(*), min(id), max(d), sum(n), avg(n), bool_or(b) FROM many GROUP BY k');
SELECT pg_temp.same('SELECT d, count(*), count(k), sum(id) FROM many GROUP BY d');
SELECT pg_temp.same('SELECT u, b, count(*), variance(n) FROM many GROUP BY u, b');
SELECT pg_temp.same('SELECT k, d, b, n, count(*) FROM many GROUP BY 1, 2, 3, 4');
SELECT pg_temp.same('SELECT date_trunc(''hour'', ts), k, count(*) FROM many GROUP BY 1, 2');
SELECT pg_temp.same('SELECT date_bin(''7 min'', ts, ''2026-01-01Z''), count(*) FROM many GROUP BY 1');
SELECT pg_temp.same('SELECT DISTINCT k, n FROM many');
SELECT pg_temp.same('SELECT n % 7, count(*) FROM many GROUP BY 1');
SELECT pg_temp.same('SELECT k, count(*) FILTER (WHERE k LIKE ''a%''), sum(n) FILTER (WHERE length(k) > 80) FROM many WHERE id % 2 = 0 GROUP BY k HAVING count(*) > 1');
SELECT pg_temp.same('SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM many GROUP BY k');
SELECT pg_temp.same('SELECT DISTINCT ON (id) id, d, ts, k FROM fresh ORDER BY id, ts DESC');
SELECT pg_temp.same('SELECT DISTINCT ON (u) u, ts, id FROM fresh WHERE id % 3 > 0 ORDER BY u, ts');
SET lanes.vectorize = on;
SELECT o, (SELECT count(*) FROM (SELECT DISTINCT ON (id) id, n FROM fresh WHERE id > o * 10000 ORDER BY id, ts) q) FROM generate_series(0, 3) o;
-- Rescans, cursors that stop in the middle, and scrolling.
SELECT o, (SELECT count(*) FROM (SELECT k, n, count(*) FROM many WHERE id > o * 10000 GROUP BY 1, 2) q) FROM generate_series(0, 3) o;
SELECT count(*) FROM generate_series(1, 2) o LEFT JOIN LATERAL (SELECT id, count(*) FROM many GROUP BY id OFFSET 0) q ON q.count = o;
BEGIN;
DECLARE c CURSOR FOR SELECT id, count(*) FROM many GROUP BY id;
MOVE 20000 FROM c; MOVE 100000 FROM c; CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT id, count(*) FROM many GROUP BY id;
MOVE 20000 FROM c; MOVE BACKWARD 100000 FROM c; MOVE FORWARD ALL FROM c;
ROLLBACK;
-- An error that an expression raises while rows come back.
SELECT count(s) FROM (SELECT id, sum(1 / (id - 29000)) AS s FROM many GROUP BY id OFFSET 0) q;
-- The limit of temporary files holds.
SET temp_file_limit = '100kB';
\set VERBOSITY sqlstate
SELECT count(*) FROM (SELECT k, d, count(*) FROM many GROUP BY 1, 2) q;
\set VERBOSITY default
RESET temp_file_limit;
SELECT count(*), sum(c) FROM (SELECT k, d, count(*) AS c FROM many GROUP BY 1, 2) q;
SET client_min_messages = warning;
DROP SCHEMA waiting CASCADE; DROP SCHEMA waiting_heap CASCADE;

-- Joins by time in all ways to run a plan: cursors, parallel settings, cached plans, temporary
-- tables.
CREATE SCHEMA time_join_ways;
SET search_path = time_join_ways, public; SET default_table_access_method = lanes; SET timezone = 'UTC';
CREATE TABLE l (id int, ts timestamptz, k int);
CREATE TABLE r (ts timestamptz, k int, v int);
INSERT INTO l SELECT i, '2026-01-01'::timestamptz + i * interval '1 s', i % 3 FROM generate_series(1, 3000) i;
INSERT INTO r SELECT '2026-01-01'::timestamptz + i * interval '1 s', i % 3, i FROM generate_series(1, 3000) i;
ANALYZE l, r;
CREATE VIEW near AS
  SELECT l.id, q.v FROM l LEFT JOIN LATERAL (SELECT v FROM r WHERE r.k = l.k AND r.ts < l.ts ORDER BY r.ts DESC LIMIT 1) q ON true;
CREATE VIEW within AS
  SELECT l.id, q.n, q.s FROM l LEFT JOIN LATERAL (SELECT count(*) n, sum(v) s FROM r WHERE r.k = l.k AND r.ts < l.ts AND r.ts >= l.ts - interval '9 s') q ON true;

-- Cursors move forwards, in steps of any size, and past the end.
SET lanes.vectorize = require;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT * FROM near;
FETCH 0 FROM c;
FETCH 3 FROM c;
MOVE 2000 FROM c;
FETCH 2 FROM c;
FETCH ABSOLUTE 2500 FROM c;
FETCH RELATIVE 2 FROM c;
MOVE FORWARD ALL FROM c;
FETCH NEXT FROM c;
CLOSE c;
DECLARE w NO SCROLL CURSOR FOR SELECT * FROM within;
FETCH 2 FROM w;
MOVE 2043 FROM w;
FETCH 5 FROM w;
SAVEPOINT s;
FETCH BACKWARD 1 FROM w;
ROLLBACK TO s;
DECLARE c NO SCROLL CURSOR FOR SELECT * FROM near;
FETCH 1 FROM c;
MOVE PRIOR FROM c;
ROLLBACK;
-- A scrolling cursor keeps the rows that it has read, and does not see rows that are added
-- meanwhile.
BEGIN;
DECLARE back SCROLL CURSOR FOR SELECT * FROM within;
FETCH ABSOLUTE 2060 FROM back;
INSERT INTO r VALUES ('2026-01-01', 0, 1000000);
FETCH PRIOR FROM back;
FETCH ABSOLUTE 12 FROM back;
FETCH LAST FROM back;
FETCH RELATIVE -1 FROM back;
FETCH NEXT FROM back;
FETCH NEXT FROM back;
ROLLBACK;
-- A cursor that may scroll has PostgreSQL's own plan, with its restrictions.
RESET lanes.vectorize;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM near;
FETCH 2 FROM c;
FETCH PRIOR FROM c;
ROLLBACK;

-- Two cursors over the same tables at once, and one that is held beyond its transaction.
BEGIN;
DECLARE one NO SCROLL CURSOR FOR SELECT * FROM near;
DECLARE two NO SCROLL CURSOR WITH HOLD FOR SELECT * FROM near WHERE id > 2996;
FETCH 2 FROM one;
FETCH 1 FROM two;
FETCH 1 FROM one;
COMMIT;
FETCH ALL FROM two;
CLOSE two;

-- Parallel plans have the same answers.
CREATE FUNCTION pg_temp.answer() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', (SELECT (count(*), count(v), sum(v)) FROM near), (SELECT (count(*), sum(n), sum(s)) FROM within),
    (SELECT sum(hashint8(id * 100000 + coalesce(v, 0))::int8) FROM near WHERE id % 7 = 3), (SELECT max(s - n) FROM within WHERE n > 2)) $$;
CREATE TEMPORARY TABLE answers (how text, answer text) USING heap;
INSERT INTO answers SELECT 'as it is', pg_temp.answer();
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
INSERT INTO answers SELECT 'parallel', pg_temp.answer();
SET parallel_leader_participation = off;
INSERT INTO answers SELECT 'parallel without the leader', pg_temp.answer();
SELECT set_config(name, 'on', false) AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
INSERT INTO answers SELECT 'in a worker', pg_temp.answer();
SELECT set_config(name, reset_val, false) AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET lanes.vectorize = off;
INSERT INTO answers SELECT 'parallel, not vectorised', pg_temp.answer();
RESET parallel_leader_participation; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET max_parallel_workers_per_gather;
INSERT INTO answers SELECT 'not vectorised', pg_temp.answer();
RESET lanes.vectorize;
SELECT string_agg(how, '; '), answer FROM answers GROUP BY answer;

-- A cached plan is made again if a column changes its type, is renamed or dropped, and if a table
-- is replaced.
SET plan_cache_mode = force_generic_plan;
PREPARE rows AS SELECT * FROM near WHERE id BETWEEN 500 AND 502;
PREPARE groups AS SELECT count(*), sum(q.v)::float8 FROM l JOIN LATERAL (SELECT v FROM r WHERE r.k = l.k AND r.ts <= l.ts ORDER BY r.ts DESC LIMIT 1) q ON true;
PREPARE windows AS SELECT sum(q.s) FROM l JOIN LATERAL (SELECT sum(v) s FROM r WHERE r.k = l.k AND r.ts <= l.ts AND r.ts > l.ts - interval '9 s') q ON true;
EXECUTE rows; EXECUTE groups; EXECUTE windows;
BEGIN;
DROP VIEW near, within;
ALTER TABLE r ALTER COLUMN v TYPE float8 USING v / 2.0;
EXPLAIN (COSTS OFF) EXECUTE groups;
EXECUTE groups;
ROLLBACK;
EXECUTE rows; EXECUTE groups;
BEGIN;
DROP VIEW near, within;
ALTER TABLE r ALTER COLUMN v TYPE int8 USING v * 10000000000;
EXPLAIN (COSTS OFF) EXECUTE windows;
ROLLBACK;
BEGIN;
DROP VIEW near, within;
ALTER TABLE l ALTER COLUMN k TYPE text;
SAVEPOINT s;
EXECUTE groups;
ROLLBACK TO s;
EXECUTE windows;
ROLLBACK;
ALTER TABLE r ADD COLUMN w int DEFAULT 1;
EXECUTE rows; EXECUTE groups; EXECUTE windows;
BEGIN;
TRUNCATE r;
EXECUTE rows; EXECUTE groups; EXECUTE windows;
ROLLBACK;
EXECUTE groups;
DEALLOCATE rows; DEALLOCATE groups; DEALLOCATE windows;
RESET plan_cache_mode;

-- Temporary tables, on either side.
CREATE TEMPORARY TABLE tl AS SELECT * FROM l WHERE id <= 2500;
CREATE TEMPORARY TABLE tr AS SELECT * FROM r WHERE v % 2 = 0;
ANALYZE tl, tr;
SET lanes.vectorize = require;
SELECT count(*), count(q.v), sum(q.v) FROM tl l LEFT JOIN tr q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT count(*), count(q.v), sum(q.v) FROM l LEFT JOIN tr q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT count(*), count(q.v), sum(q.v) FROM tl l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT sum(q.n), sum(q.s) FROM tl l LEFT JOIN LATERAL (SELECT count(*) n, sum(v) s FROM tr r WHERE r.k = l.k AND r.ts < l.ts AND r.ts >= l.ts - interval '9 s') q ON true;
SET lanes.vectorize = off;
SELECT count(*), count(q.v), sum(q.v) FROM tl l LEFT JOIN tr q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT count(*), count(q.v), sum(q.v) FROM l LEFT JOIN tr q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT count(*), count(q.v), sum(q.v) FROM tl l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
SELECT sum(q.n), sum(q.s) FROM tl l LEFT JOIN LATERAL (SELECT count(*) n, sum(v) s FROM tr r WHERE r.k = l.k AND r.ts < l.ts AND r.ts >= l.ts - interval '9 s') q ON true;
RESET lanes.vectorize;
BEGIN;
CREATE TEMPORARY TABLE gone (ts timestamptz, k int, v int) ON COMMIT DELETE ROWS;
INSERT INTO gone SELECT ts, k, v FROM r;
SELECT count(q.v), sum(q.v) FROM tl l LEFT JOIN gone q ON q.k = l.k AND lanes.asof(q.ts < l.ts);
COMMIT;
SELECT count(q.v), sum(q.v) FROM tl l LEFT JOIN gone q ON q.k = l.k AND lanes.asof(q.ts < l.ts);

-- EXPLAIN reports the memory of a join: a merge takes less than a join from a late row on, which
-- reads the right side into memory.
CREATE TEMPORARY TABLE memory (query text, algorithm text, kilobytes int) USING heap;
CREATE FUNCTION pg_temp.measure() RETURNS void LANGUAGE plpgsql AS $$
DECLARE query text; plan json;
BEGIN
    FOREACH query IN ARRAY ARRAY['SELECT * FROM near', 'SELECT count(v) FROM near', 'SELECT * FROM within', 'SELECT sum(n) FROM within'] LOOP
        EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT json) ' || query INTO plan;
        INSERT INTO memory VALUES (query, plan->0->'Plan'->>'Join Algorithm', (plan->0->'Plan'->>'Memory')::int);
    END LOOP;
END $$;
SELECT pg_temp.measure();
INSERT INTO r VALUES ('2026-01-01', 1, 1);
SELECT pg_temp.measure();
SELECT a.query, a.algorithm, b.algorithm, a.kilobytes > 0 AND a.kilobytes < b.kilobytes AS less
  FROM memory a JOIN memory b USING (query) WHERE a.algorithm = 'side by side' AND b.algorithm <> 'side by side' ORDER BY 1;

SET client_min_messages = warning;
DROP SCHEMA time_join_ways CASCADE;
DROP TABLE tl, tr, gone, answers, memory;

-- Groups of hash joins, and groups by computed values, by several processes. Each answer is compared with that of one
-- process, and with PostgreSQL's own.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (id int, k int, s text, f float8, ts timestamptz) USING lanes;
INSERT INTO l SELECT i, CASE WHEN i % 17 > 0 THEN i % 400 END, CASE WHEN i % 11 > 0 THEN 's' || i % 7 END,
    CASE WHEN i % 13 > 0 THEN i % 101 END, '2024-01-01'::timestamptz + i * interval '1 min' FROM generate_series(1, 80000) i;
CREATE TABLE d (id int, region text, level int, active bool);
INSERT INTO d SELECT i, CASE WHEN i % 5 > 0 THEN 'r' || i % 9 END, i % 13, i % 2 = 0 FROM generate_series(1, 300) i;
CREATE TABLE kind (s text, name text) USING lanes;
INSERT INTO kind SELECT 's' || i, 'name ' || i % 3 FROM generate_series(0, 5) i;
-- The planner is to expect few groups.
ALTER TABLE l ALTER id SET (n_distinct = 20), ALTER ts SET (n_distinct = 10);
ANALYZE l; ANALYZE d; ANALYZE kind;
CREATE FUNCTION answer(query text, workers int, vectorize text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
    PERFORM set_config('max_parallel_workers_per_gather', workers::text, true), set_config('lanes.vectorize', vectorize, true);
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO answer;
    RETURN answer;
END $$;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE expected text := answer(query, 0, 'off'); one text := answer(query, 0, 'on'); several text := answer(query, 2, 'on');
    plan text := ''; line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    RETURN CASE WHEN expected IS DISTINCT FROM several THEN format('%s differs: %s instead of %s', query, several, expected)
        WHEN expected IS DISTINCT FROM one THEN format('%s of one process differs: %s instead of %s', query, one, expected)
        WHEN plan LIKE '%Finalize%Gather%Parallel Custom Scan (LanesAggregate)%' THEN 'same' ELSE 'same, but: ' || plan END;
END $$;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;

EXPLAIN (COSTS OFF) SELECT d.region, count(*), avg(l.f) FROM l JOIN d ON d.id = l.k WHERE l.f > 20 AND d.active GROUP BY 1;
-- Kinds of joins.
SELECT same('SELECT d.region, count(*), sum(l.f), avg(l.f)::numeric(20, 9) FROM l JOIN d ON d.id = l.k GROUP BY 1');
SELECT same('SELECT d.region, count(*), count(d.id), max(l.f) FROM l LEFT JOIN d ON d.id = l.k GROUP BY 1');
SELECT same('SELECT l.s, count(*), sum(l.id) FROM l WHERE k IN (SELECT id FROM d WHERE level < 5) GROUP BY 1');
SELECT same('SELECT l.s, count(*), sum(l.id) FROM l WHERE NOT EXISTS (SELECT FROM d WHERE d.id = l.k AND d.active) GROUP BY 1');
SELECT same('SELECT count(*), sum(l.f), sum(d.level), min(d.level + l.f) FROM l JOIN d ON d.id = l.k WHERE d.active');
-- A left row with several small rows; keys of text; several keys; conditions and FILTER on both sides.
SELECT same('SELECT d.region, l.s, count(*), sum(l.f + d.level) FROM l JOIN d ON d.level = l.k GROUP BY 1, 2');
SELECT same('SELECT kind.name, count(*), avg(f)::numeric(20, 9) FROM l JOIN kind ON kind.s = l.s GROUP BY 1');
SELECT same('SELECT d.region, count(*) FILTER (WHERE d.active), sum(f) FILTER (WHERE l.s = ''s3'') FROM l JOIN d ON d.id = l.k AND d.level = l.k % 13 GROUP BY 1');
-- Further conditions between the sides, by vectors and by PostgreSQL.
SELECT same('SELECT d.region, count(*), sum(l.id) FROM l JOIN d ON d.level = l.k AND l.f > d.id * 0.3 GROUP BY 1');
SELECT same('SELECT d.region, count(*), count(d.id) FROM l LEFT JOIN d ON d.level = l.k AND l.f > d.id * 0.3 AND l.s <> d.region GROUP BY 1');
-- Stars and snowflakes.
SELECT same('SELECT d.region, kind.name, count(*), sum(l.id) FROM l JOIN d ON d.id = l.k JOIN kind ON kind.s = l.s GROUP BY 1, 2');
SELECT same('SELECT d.level, kind.name, count(*), sum(l.id) FROM l JOIN d ON d.id = l.k LEFT JOIN kind ON kind.s = l.s GROUP BY 1, 2');
SELECT same('SELECT date_trunc(''day'', l.ts), d.level, count(*) FROM l JOIN d ON d.id = l.k GROUP BY 1, 2 HAVING count(*) > 3');
-- An empty small side, and one without matches.
SELECT same('SELECT d.region, count(*) FROM l JOIN d ON d.id = l.k WHERE d.level > 100 GROUP BY 1');
SELECT same('SELECT count(*), sum(l.f) FROM l JOIN d ON d.id = l.k WHERE d.level > 100');
SELECT same('SELECT d.region, count(*) FROM l JOIN d ON d.id = l.k + 1000 GROUP BY 1');
-- Only workers, then only the leader.
SET parallel_leader_participation = off;
SELECT same('SELECT d.region, count(*), sum(l.f) FROM l JOIN d ON d.id = l.k GROUP BY 1');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT same('SELECT d.region, count(*), sum(l.f) FROM l JOIN d ON d.id = l.k GROUP BY 1');
RESET max_parallel_workers;
-- Rescans.
SET enable_material = off; SET enable_memoize = off;
SELECT x, (SELECT sum(f) FROM l JOIN d ON d.id = l.k WHERE d.level = x) FROM generate_series(1, 3) x;
RESET enable_material; RESET enable_memoize;

-- Not by several processes: small rows without a match are returned once; a small side may be too large; its rows may differ.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line LIKE '%Lanes%' THEN RETURN NEXT regexp_replace(line, '^[ >-]*', ''); END IF;
    END LOOP;
END $$;
SELECT plan('SELECT d.region, count(*), count(l.id) FROM l RIGHT JOIN d ON d.id = l.k GROUP BY 1');
SELECT same('SELECT d.region, count(*), count(l.id) FROM l RIGHT JOIN d ON d.id = l.k GROUP BY 1') LIKE 'same%' AS same;
SELECT plan('SELECT d.region, count(*), count(l.id) FROM l LEFT JOIN (SELECT * FROM d ORDER BY level LIMIT 9) d ON d.id = l.k GROUP BY 1');
SELECT plan('SELECT d.region, count(*) FROM l JOIN (SELECT * FROM d WHERE random() < 2) d ON d.id = l.k GROUP BY 1');

-- A small side that takes several batches in each process.
CREATE TABLE large (id int, name text, n int);
INSERT INTO large SELECT i % 500, repeat('n' || i % 50, 20), i % 50 FROM generate_series(1, 6000) i;
ANALYZE large;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE FUNCTION batches(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
    RETURN plan::text ~ '"Parallel Aware": true' AND (regexp_match(plan::text, '"Batches": (\d+)'))[1]::int > 1;
END $$;
SELECT same('SELECT l.s, count(*), sum(l.id::bigint), max(large.n) FROM l JOIN large ON large.id = l.k GROUP BY 1');
SELECT batches('SELECT l.s, count(*), sum(l.id::bigint), max(large.n) FROM l JOIN large ON large.id = l.k GROUP BY 1') AS has_batches;
-- Values of a side that is grouped by are kept, so one process reads such a side in batches.
SELECT plan('SELECT name, count(*) FROM l JOIN large ON large.id = l.k GROUP BY 1');
-- More groups than fit into memory: a process returns some of them before it has read all rows.
CREATE FUNCTION put_aside(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
    RETURN (regexp_match(plan::text, '"Groups Put Aside": (\d+)'))[1]::int > 1000;
END $$;
SELECT same('SELECT l.id % 20000, count(*), sum(f), sum(d.level) FROM l JOIN d ON d.id = l.k GROUP BY 1');
SELECT put_aside('SELECT l.id % 20000, count(*), sum(f), sum(d.level) FROM l JOIN d ON d.id = l.k GROUP BY 1') AS put_aside;

-- Groups by values that PostgreSQL computes: for each row, for each entry of a dictionary, for each range of times.
SELECT same('SELECT md5((l.id % 20000)::text), count(*), sum(f) FROM l GROUP BY 1');
SELECT put_aside('SELECT md5((l.id % 20000)::text), count(*), sum(f) FROM l GROUP BY 1') AS put_aside;
SELECT same('SELECT md5((l.id % 3000)::text), extract(hour FROM ts), count(*), sum(f) FROM l GROUP BY 1, 2');
SELECT put_aside('SELECT md5((l.id % 3000)::text), extract(hour FROM ts), count(*), sum(f) FROM l GROUP BY 1, 2') AS put_aside;
RESET work_mem; RESET hash_mem_multiplier;
SELECT same('SELECT upper(s), count(*), sum(f) FROM l GROUP BY 1');
SELECT same('SELECT extract(dow FROM ts), count(*), sum(f) FROM l GROUP BY 1');
SELECT same('SELECT round(f::numeric / 10), count(*), avg(id) FROM l GROUP BY 1');

-- Sealed rows; changes of the same transaction; row-level security on the small side.
SELECT lanes.seal('l');
SELECT same('SELECT d.region, kind.name, count(*), sum(l.id) FROM l JOIN d ON d.id = l.k JOIN kind ON kind.s = l.s GROUP BY 1, 2');
BEGIN;
DELETE FROM l WHERE k = 3;
INSERT INTO l (id, k, s, f) SELECT i, 7, 's1', 60 FROM generate_series(1, 3000) i;
UPDATE d SET region = 'new' WHERE id = 7;
SELECT same('SELECT d.region, count(*), sum(l.f) FROM l JOIN d ON d.id = l.k GROUP BY 1');
ROLLBACK;
CREATE ROLE reader;
GRANT SELECT ON l, d TO reader;
CREATE POLICY few ON d TO reader USING (level < 3);
ALTER TABLE d ENABLE ROW LEVEL SECURITY;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO reader;
SET ROLE reader;
SELECT same('SELECT d.level, count(*), sum(l.f) FROM l JOIN d ON d.id = l.k GROUP BY 1') LIKE 'same%' AS same;
SELECT d.level, count(*) FROM l JOIN d ON d.id = l.k GROUP BY 1 ORDER BY 1;
RESET ROLE;
-- Errors of workers.
\set VERBOSITY terse
SELECT d.region, sum(1 / (l.id - 70001)) FROM l JOIN d ON d.id = l.k GROUP BY 1;
DROP TABLE l, d, kind, large;
DROP FUNCTION same(text);
DROP FUNCTION answer(text, int, text);
DROP FUNCTION plan(text);
DROP FUNCTION batches(text);
DROP FUNCTION put_aside(text);
DROP ROLE reader;

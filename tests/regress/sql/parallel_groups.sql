-- Groups by several processes. Each answer is compared with that of one process.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (id int, k int, s text, u uuid, b bool, i2 int2, i8 int8, f4 float4, f float8, ts timestamptz) USING lanes;
INSERT INTO l SELECT i, i % 10, CASE WHEN i % 11 > 0 THEN 's' || i % 7 END, md5((i % 5)::text)::uuid, i % 3 = 0, i % 300 - 150,
    CASE WHEN i % 6 > 0 THEN i * 112500000000 END, i % 31, CASE WHEN i % 13 > 0 THEN i % 101 END,
    '2024-01-01'::timestamptz + i * interval '1 min' FROM generate_series(1, 80000) i;
ANALYZE l;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE serial text; parallel text; plan text := ''; line text;
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO serial;
    SET LOCAL max_parallel_workers_per_gather = 2;
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO parallel;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    IF serial IS DISTINCT FROM parallel THEN
        RETURN format('%s differs: %s instead of %s', query, parallel, serial);
    END IF;
    RETURN CASE WHEN plan LIKE '%Finalize%Gather%Parallel Custom Scan (LanesAggregate)%' THEN 'same' ELSE 'same, but: ' || plan END;
END $$;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;

EXPLAIN (COSTS OFF, VERBOSE) SELECT s, count(*), avg(f), sum(i8) FROM l WHERE f > 50 GROUP BY s HAVING max(f) < 200;
-- Extremes of texts.
SELECT same('SELECT k, min(s), max(s), max(s COLLATE "C") FROM l GROUP BY k');
-- Every transition state, also of groups without numbers.
SELECT same('SELECT k, count(*), count(f), sum(i2), sum(id), sum(i8), sum(f4), sum(f) FROM l GROUP BY k');
SELECT same('SELECT k, avg(i2), avg(id), avg(i8), avg(f4), avg(f)::numeric(20, 9) FROM l GROUP BY k');
SELECT same('SELECT k, variance(i2), var_pop(id), stddev(i2), stddev_pop(id), round(var_samp(f)::numeric, 9), round(stddev_pop(f4)::numeric, 9) FROM l GROUP BY k');
SELECT same('SELECT k, min(i2), max(i8), min(f4), max(f), min(ts), bool_and(b), bool_or(b), every(id > 0) FROM l GROUP BY k');
SELECT same('SELECT count(f), sum(f), avg(f), avg(i2), sum(i8), avg(i8), stddev(f), stddev(id), max(ts), bool_or(b) FROM l WHERE f IS NULL AND i8 IS NULL');
SELECT same('SELECT count(i8), sum(i8), avg(i8), avg(id), variance(f), variance(id) FROM l WHERE k < 0 AND f > 0');
SELECT same('SELECT k, sum(i8) FROM l WHERE id < 0 GROUP BY k');
SELECT same('SELECT k, sum(f) FILTER (WHERE b), avg(f) FILTER (WHERE id > 79990), count(*) FILTER (WHERE id > 79990) FROM l GROUP BY k');
-- An average and a variance that have one state.
SELECT same('SELECT k, avg(f)::numeric(20, 9), round(stddev(f)::numeric, 9), avg(f4), round(variance(f4)::numeric, 9) FROM l GROUP BY k');
SELECT same('SELECT k, sum(i8), avg(i8), avg(id), sum(id) FROM l GROUP BY k');
-- Great numbers.
SELECT same('SELECT sum(i8 * 1000), avg(-i8), sum(9223372036854775807 - i8 * 0) FROM l');
-- Keys of every kind.
SELECT same('SELECT s, count(*) FROM l GROUP BY s');
SELECT same('SELECT u, sum(id) FROM l GROUP BY u');
SELECT same('SELECT b, s, k % 2, sum(id) FROM l GROUP BY b, s, k % 2');
SELECT same('SELECT date_trunc(''day'', ts), avg(id) FROM l GROUP BY 1');
SELECT same('SELECT lanes.time_bucket(''1 day'', ts) AS day, s, avg(id) FROM l GROUP BY day, s HAVING count(*) > 100');
SELECT same('SELECT floor(extract(epoch FROM ts) / 86400) * 86400 AS day, max(f) FROM l GROUP BY 1');
SELECT same('SELECT k FROM l GROUP BY k');
SELECT same('SELECT k, s, sum(f) FROM l WHERE k = 3 GROUP BY k, s');
-- A key of one value, with a row and without.
SELECT same('SELECT k, count(*), sum(f) FROM l WHERE k = 3 GROUP BY k');
SELECT same('SELECT k, count(*), sum(f) FROM l WHERE k = -3 GROUP BY k');
SELECT k, count(*), sum(f) FROM l WHERE k = -3 GROUP BY k;
SELECT same('SELECT sum(id) + count(*) * 2, k + 1 FROM l GROUP BY k ORDER BY sum(id) DESC LIMIT 3');
SELECT same('SELECT DISTINCT sum(id) % 3 FROM l GROUP BY s');
-- The planner knows how many buckets of a width there are.
CREATE FUNCTION rows_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
    RETURN plan -> 0 -> 'Plan' ->> 'Plan Rows';
END $$;
SELECT rows_of('SELECT date_trunc(''hour'', ts), avg(id) FROM l GROUP BY 1') BETWEEN 1200 AND 1400 AS hours,
    rows_of('SELECT floor(extract(epoch FROM ts) / 3600) * 3600, avg(id) FROM l GROUP BY 1') BETWEEN 1200 AND 1400 AS epoch_hours,
    rows_of('SELECT lanes.time_bucket(''1 day'', ts), k, avg(id) FROM l GROUP BY 1, 2') BETWEEN 500 AND 620 AS days_and_keys,
    rows_of('SELECT date_bin(''1 hour'', ts, ''2000-01-01''), avg(id) FROM l WHERE ts < ''2024-01-11'' GROUP BY 1') BETWEEN 200 AND 280 AS hours_of_ten_days,
    rows_of('SELECT date_trunc(''hour'', ts + interval ''1 min''), avg(id) FROM l GROUP BY 1') > 10000 AS not_a_column;
-- Groups that do not fit into memory, and more than the planner expects.
ALTER TABLE l ALTER id SET (n_distinct = 100); ANALYZE l (id);
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT same('SELECT id % 30000, count(*), sum(f) FROM l GROUP BY 1');
RESET work_mem;
RESET hash_mem_multiplier;

-- What one process does: zone maps have the result, values are kept, order matters, too many groups.
EXPLAIN (COSTS OFF) SELECT count(*), max(f), sum(id), avg(i8) FROM l;
EXPLAIN (COSTS OFF) SELECT k, count(DISTINCT s) FROM l GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY f) FROM l GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k, lanes.last(f, ts) FROM l GROUP BY k;
EXPLAIN (COSTS OFF) SELECT k, lanes.ema(f, 0.5 ORDER BY ts) FROM l GROUP BY k;
SET parallel_tuple_cost = 10;
EXPLAIN (COSTS OFF) SELECT id, sum(f) FROM l GROUP BY id;
SET parallel_tuple_cost = 0;
SET parallel_setup_cost = 1000000;
EXPLAIN (COSTS OFF) SELECT k, sum(f) FROM l GROUP BY k;
SET parallel_setup_cost = 0;

-- EXPLAIN counts the work of all processes.
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT line FROM pg_temp.explained(query, 'Segments|Vectors|Rows') line $$;
SELECT explained('SELECT k, sum(f) FROM l WHERE f > 50 GROUP BY k');
SELECT explained('SELECT count(*), sum(f) FROM l WHERE id > 70000');

-- The last result once more, and with another parameter.
SET enable_material = off; SET enable_memoize = off;
SELECT x, (SELECT sum(f) FROM l WHERE f > x * 30) FROM generate_series(1, 3) x;
SELECT same('SELECT x, c FROM generate_series(1, 3) x LEFT JOIN (SELECT sum(f) AS c FROM l WHERE f > 50) q ON c > x');
PREPARE above (float8) AS SELECT k, sum(id), count(f) FROM l WHERE f > $1 GROUP BY k ORDER BY k LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE above (50);
EXECUTE above (50);
EXECUTE above (99);
RESET plan_cache_mode; RESET enable_material; RESET enable_memoize;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k, sum(id) FROM l WHERE f > 7 GROUP BY k ORDER BY k;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
-- Only workers, then only the leader.
SET parallel_leader_participation = off;
SELECT same('SELECT k, sum(id), avg(f4) FROM l WHERE f > 50 GROUP BY k');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT same('SELECT k, sum(id), avg(f4) FROM l WHERE f > 50 GROUP BY k');
RESET max_parallel_workers;

-- Errors come from workers too.
SELECT sum(1 / (id - 79999)) FROM l WHERE f >= 0 OR f IS NULL;
SELECT k, sum(id * 100000) FROM l GROUP BY k;
-- Rights and row-level security hold.
CREATE ROLE reader;
GRANT SELECT ON l TO reader;
CREATE POLICY few ON l TO reader USING (k < 3);
ALTER TABLE l ENABLE ROW LEVEL SECURITY;
SET ROLE reader;
SET lanes.vectorize = require;
EXPLAIN (COSTS OFF) SELECT k, sum(id) FROM l GROUP BY k;
SELECT k, sum(id) FROM l GROUP BY k ORDER BY k;
RESET lanes.vectorize;
RESET ROLE;
ALTER TABLE l DISABLE ROW LEVEL SECURITY;

-- Changes of the same transaction; deleted rows; sealed rows.
BEGIN;
DELETE FROM l WHERE k = 3;
UPDATE l SET s = 'sss' WHERE id = 80000;
INSERT INTO l (id, k, s, f) SELECT i, 77, 'new', 60 FROM generate_series(1, 3000) i;
SELECT same('SELECT k, s, count(*), sum(id) FROM l WHERE f > 50 GROUP BY k, s');
ROLLBACK;
DELETE FROM l WHERE k = 4;
SELECT lanes.seal('l');
SELECT same('SELECT k, s, count(*), sum(id), avg(f4) FROM l GROUP BY k, s');
SELECT same('SELECT count(*), sum(f) FROM l WHERE id BETWEEN 1000 AND 70000');
DROP TABLE l;
DROP ROLE reader;
DROP FUNCTION same(text);
DROP FUNCTION rows_of(text);
DROP FUNCTION explained(text);

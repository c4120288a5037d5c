-- Aggregates of distinct values, vectorised.
SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC'; SET extra_float_digits = 0;
CREATE SCHEMA distinct_values; CREATE SCHEMA distinct_heap; SET search_path = distinct_values;
CREATE TABLE r (g int, k text, u uuid, d float8, f float4, i int4, l int8, s int2, b bool, ts timestamptz, day date) USING lanes;
INSERT INTO r SELECT i % 7, CASE WHEN i % 13 > 0 THEN 'k' || i % 40 END, md5((i % 30)::text)::uuid,
  CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 0 WHEN 3 THEN -0.0 WHEN 4 THEN 'Infinity' ELSE i % 50 / 4.0 END,
  i % 20 / 8.0, CASE WHEN i % 5 > 0 THEN i % 100 END, 5000000000 * (i % 11), (i % 3)::int2, CASE i % 4 WHEN 0 THEN true WHEN 1 THEN false END,
  timestamptz '2026-01-01Z' + i * interval '7 min', date '2026-01-01' + i % 17 FROM generate_series(1, 9000) i;
DELETE FROM r WHERE i = 42;
CREATE TABLE distinct_heap.r USING heap AS TABLE r;
CREATE TABLE none (LIKE r) USING lanes; CREATE TABLE distinct_heap.none (LIKE r) USING heap;
ANALYZE;
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE same bool; line text; result text := 'by vectors';
BEGIN
    EXECUTE format('CREATE TEMP TABLE of_lanes AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = distinct_heap;
    EXECUTE format('CREATE TEMP TABLE of_heap AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = distinct_values;
    SELECT NOT EXISTS ((TABLE of_lanes EXCEPT ALL TABLE of_heap) UNION ALL (TABLE of_heap EXCEPT ALL TABLE of_lanes)) INTO same;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        result := coalesce(substring(line FROM 'Not Vectorised: .*'), substring(line FROM 'Handed Over'), result);
    END LOOP;
    DROP TABLE of_lanes, of_heap;
    RETURN CASE WHEN same THEN 'same, ' ELSE 'DIFFERENT, ' END || result;
END $$;
EXPLAIN (COSTS OFF) SELECT g, count(DISTINCT k), sum(DISTINCT i) FROM r GROUP BY g;
-- Every type; NULLs, all NaNs and zeros of both signs count once.
SELECT count(DISTINCT k), count(DISTINCT u), count(DISTINCT d), count(DISTINCT f), count(DISTINCT i), count(DISTINCT l), count(DISTINCT b), count(DISTINCT day) FROM r;
SELECT pg_temp.same('SELECT count(DISTINCT k), count(DISTINCT u), count(DISTINCT d), count(DISTINCT f), count(DISTINCT i), count(DISTINCT l), count(DISTINCT s), count(DISTINCT b), count(DISTINCT ts), count(DISTINCT day) FROM r');
SELECT pg_temp.same('SELECT sum(DISTINCT f), sum(DISTINCT i), avg(DISTINCT l), sum(DISTINCT s), avg(DISTINCT i), variance(DISTINCT i), sum(DISTINCT d) FILTER (WHERE d < 9) FROM r');
SELECT pg_temp.same('SELECT g, count(DISTINCT k), sum(DISTINCT i), count(*), count(DISTINCT d) FILTER (WHERE b), min(DISTINCT i), max(DISTINCT d), bool_or(DISTINCT b) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT k, date_trunc(''day'', ts), count(DISTINCT i), sum(DISTINCT s) FROM r GROUP BY 1, 2');
SELECT pg_temp.same('SELECT ts, count(DISTINCT k) FROM r GROUP BY ts HAVING count(DISTINCT k) = 1');
SELECT pg_temp.same('SELECT count(DISTINCT date_trunc(''day'', ts)), count(DISTINCT i % 10), count(DISTINCT i > 50), count(DISTINCT k COLLATE "C") FROM r WHERE g > 2');
SELECT pg_temp.same('SELECT count(DISTINCT k), sum(DISTINCT i) FROM none');
SELECT pg_temp.same('SELECT g, count(DISTINCT k) FROM none GROUP BY g');
SELECT pg_temp.same('SELECT sum(c) FROM (SELECT g, count(DISTINCT k) AS c FROM r GROUP BY g) q');
-- Rows of several values: NULLs are equal to each other, and a row of NULLs counts.
SELECT count(DISTINCT (k, i)), count(DISTINCT (b, d)) FROM r;
SELECT pg_temp.same('SELECT count(DISTINCT (g, k)), count(DISTINCT (k, i)), count(DISTINCT (b, d)), count(DISTINCT (u, f, s)), count(DISTINCT (i, 1)), count(DISTINCT ROW(day)) FROM r');
SELECT pg_temp.same('SELECT g, count(DISTINCT (k, i)), count(DISTINCT (b, d)) FILTER (WHERE s > 0), count(DISTINCT (ts, k)), sum(i) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT k, count(DISTINCT (date_trunc(''day'', ts), i % 3)) FROM r WHERE g > 1 GROUP BY k');
SELECT pg_temp.same('SELECT count(DISTINCT (g, k)) FROM none');
SELECT pg_temp.same('SELECT sum(c) FROM (SELECT g, count(DISTINCT (k, s)) AS c FROM r GROUP BY g) q');
-- Values that PostgreSQL computes.
SELECT pg_temp.same('SELECT count(DISTINCT upper(k)), count(DISTINCT k || g), count(DISTINCT i::numeric), count(DISTINCT nullif(k, ''k1'')), count(DISTINCT array[g, s]), count(DISTINCT ts - timestamptz ''2026-01-01Z'') FROM r');
SELECT pg_temp.same('SELECT g, count(DISTINCT upper(k)), count(DISTINCT lower(k) || s) FILTER (WHERE b), count(*), count(DISTINCT k::bpchar) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT substr(k, 1, 2), count(DISTINCT substr(k, 2, 1)), count(DISTINCT k) FROM r GROUP BY 1');
SELECT pg_temp.same('SELECT count(DISTINCT lower(k)) FROM r HAVING count(DISTINCT upper(k)) > 3');
SELECT pg_temp.same('SELECT count(DISTINCT (k, v)), count(DISTINCT v), count(DISTINCT upper(k)) FROM r JOIN (VALUES (1, ''a''), (2, ''b''), (3, NULL)) AS j (id, v) ON id = g');
-- Aggregates that PostgreSQL computes take distinct values in their order.
SELECT array_agg(DISTINCT b), array_agg(DISTINCT s ORDER BY s DESC), string_agg(DISTINCT left(k, 2), ',' ORDER BY left(k, 2) DESC), array_agg(DISTINCT d ORDER BY d DESC NULLS LAST) FILTER (WHERE d < 2) FROM r;
SELECT pg_temp.same('SELECT array_agg(DISTINCT i), string_agg(DISTINCT k, ''-''), array_agg(DISTINCT k COLLATE "C" ORDER BY k COLLATE "C" DESC), json_agg(DISTINCT s), sum(DISTINCT i::numeric), array_agg(DISTINCT d ORDER BY d NULLS FIRST) FROM r');
SELECT pg_temp.same('SELECT g, array_agg(DISTINCT i) FILTER (WHERE b), string_agg(DISTINCT k, '', '' ORDER BY k DESC), count(*), array_agg(DISTINCT u), array_agg(DISTINCT day), avg(DISTINCT l::numeric) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT k, array_agg(DISTINCT date_trunc(''day'', ts)), string_agg(DISTINCT g::text, NULL), string_agg(DISTINCT NULL::text, k) FROM r GROUP BY 1');
SELECT pg_temp.same('SELECT ts, array_agg(DISTINCT k), string_agg(DISTINCT upper(k), '','') FROM r GROUP BY ts');
SELECT pg_temp.same('SELECT array_agg(DISTINCT k), string_agg(DISTINCT k, '','') FROM none');
SELECT pg_temp.same('SELECT count(DISTINCT k ORDER BY k DESC), array_agg(DISTINCT k ORDER BY k DESC) FROM r');
-- The order of DISTINCT is that of the value, whatever the other arguments' collation is. Sums of floats keep ORDER BY.
SELECT pg_temp.same('SELECT string_agg(DISTINCT v, '','' COLLATE "C"), string_agg(DISTINCT v COLLATE "C", '','') FROM (SELECT CASE WHEN g < 3 THEN upper(k) ELSE k END AS v FROM r) q');
SELECT pg_temp.same('SELECT sum(DISTINCT i ORDER BY i DESC), sum(DISTINCT f ORDER BY f DESC) FROM r');
SELECT pg_temp.same('SELECT count(DISTINCT (g, ''{}''::json)) FROM r WHERE false');
SELECT count(DISTINCT (g, '{}'::json)) FROM r;
-- Errors are raised for rows that pass the filter alone.
SELECT array_agg(DISTINCT 1 / s) FILTER (WHERE s > 0) FROM r;
SELECT array_agg(DISTINCT 1 / s) FROM r;
SELECT count(DISTINCT upper(k) || 1 / s) FILTER (WHERE s > 0) FROM r;
SELECT count(DISTINCT upper(k) || 1 / s) FROM r;
SELECT count(DISTINCT (k, 1 / s)) FROM r;
-- Left to PostgreSQL, with the reason.
SELECT pg_temp.same('SELECT count(DISTINCT (g, i::numeric)) FROM r');
SELECT pg_temp.same('SELECT count(DISTINCT r) FROM r');
SELECT pg_temp.same('SELECT count(DISTINCT point(g, s)::text), count(DISTINCT random() < 2) FROM r');
SELECT pg_temp.same('SELECT count(DISTINCT 1) FROM r');
SELECT pg_temp.same('SELECT string_agg(DISTINCT k, g::text) FROM r');
SELECT pg_temp.same('SELECT array_agg(DISTINCT point(g, s)::text::json::text) FROM r WHERE false');
SELECT pg_temp.same('SELECT cardinality(array_agg(k ORDER BY random())) FROM r');
-- Sealed rows, rescans, and values that exceed their memory.
SELECT lanes.seal('r') IS NOT NULL AS is_sealed;
SELECT pg_temp.same('SELECT g, count(DISTINCT k), count(DISTINCT d), sum(DISTINCT i) FROM r GROUP BY g');
SELECT o, (SELECT count(DISTINCT k) FROM r WHERE i < o * 10) FROM generate_series(0, 3) o;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE TABLE many USING lanes AS SELECT i % 3 AS g, i, md5(i::text) AS k FROM generate_series(1, 60000) i;
CREATE TABLE distinct_heap.many USING heap AS TABLE many;
SELECT pg_temp.same('SELECT count(DISTINCT k), count(DISTINCT i) FROM many');
SELECT pg_temp.same('SELECT g, count(DISTINCT k) FROM many GROUP BY g');
SELECT pg_temp.same('SELECT g, count(DISTINCT (k, i)) FROM many GROUP BY g');
SELECT pg_temp.same('SELECT count(DISTINCT upper(k)) FROM many');
SELECT pg_temp.same('SELECT g, array_agg(DISTINCT k) FROM many GROUP BY g');
-- Few values that take much memory in many groups.
SELECT pg_temp.same('SELECT i % 500, md5(string_agg(DISTINCT repeat(''x'', 100 + g), '','')) FROM many GROUP BY 1');
-- The same in memory.
RESET work_mem;
SELECT pg_temp.same('SELECT count(DISTINCT (k, i)), count(DISTINCT (i, g)), count(DISTINCT upper(k)), count(DISTINCT k || g) FROM many');
SELECT pg_temp.same('SELECT g, count(DISTINCT (k, i)), count(DISTINCT lower(k)) FROM many GROUP BY g');
SELECT pg_temp.same('SELECT g, array_agg(DISTINCT k), string_agg(DISTINCT i::text, '','') FROM many GROUP BY g');
SET client_min_messages = warning;
DROP SCHEMA distinct_values CASCADE; DROP SCHEMA distinct_heap CASCADE;

-- Aggregates with ORDER BY, vectorised.
SET max_parallel_workers_per_gather = 0; SET timezone = 'UTC'; SET extra_float_digits = 0;
CREATE SCHEMA ordered; CREATE SCHEMA ordered_heap; SET search_path = ordered;
-- `n` is unique, and comes in no order.
CREATE TABLE r (n int, g int, k text, d float8, f float4, i int4, l int8, s int2, b bool, ts timestamptz, day date, m numeric, u uuid, x text) USING lanes;
INSERT INTO r SELECT i * 7919 % 9001, i % 7, CASE WHEN i % 13 > 0 THEN 'k' || i % 40 END,
  CASE i % 9 WHEN 0 THEN NULL WHEN 1 THEN 'NaN' WHEN 2 THEN 0 WHEN 3 THEN -0.0 WHEN 4 THEN 'Infinity' ELSE i % 50 / 4.0 END,
  i % 20 / 8.0, CASE WHEN i % 5 > 0 THEN i % 100 END, 5000000000 * (i % 11), (i % 3)::int2, CASE i % 4 WHEN 0 THEN true WHEN 1 THEN false END,
  timestamptz '2026-01-01Z' + i * 3301 % 9001 * interval '7 min', date '2026-01-01' + i % 17, i % 23 / 10.0, md5(i::text)::uuid, md5(i::text)
  FROM generate_series(1, 9000) i;
DELETE FROM r WHERE i = 42;
CREATE TABLE ordered_heap.r USING heap AS TABLE r;
CREATE TABLE none (LIKE r) USING lanes; CREATE TABLE ordered_heap.none (LIKE r) USING heap;
ANALYZE;
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE same bool; line text; result text := 'by vectors';
BEGIN
    EXECUTE format('CREATE TEMP TABLE of_lanes AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = ordered_heap;
    EXECUTE format('CREATE TEMP TABLE of_heap AS SELECT q::text FROM (%s) q', query);
    SET LOCAL search_path = ordered;
    SELECT NOT EXISTS ((TABLE of_lanes EXCEPT ALL TABLE of_heap) UNION ALL (TABLE of_heap EXCEPT ALL TABLE of_lanes)) INTO same;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        result := coalesce(substring(line FROM 'Not Vectorised: .*'), substring(line FROM 'Handed Over'), result);
    END LOOP;
    DROP TABLE of_lanes, of_heap;
    RETURN CASE WHEN same THEN 'same, ' ELSE 'DIFFERENT, ' END || result;
END $$;
EXPLAIN (COSTS OFF) SELECT g, array_agg(i ORDER BY n), (array_agg(k ORDER BY ts DESC))[1] FROM r GROUP BY g;
SELECT array_agg(n ORDER BY n), string_agg(k, ',' ORDER BY n DESC) FILTER (WHERE g < 3) FROM r WHERE n < 12;
-- Every type of key and argument, in both directions, with NULLs on both sides.
SELECT pg_temp.same('SELECT array_agg(i ORDER BY n), array_agg(d ORDER BY n DESC), array_agg(f ORDER BY -n), array_agg(l ORDER BY n), array_agg(s ORDER BY n), array_agg(b ORDER BY n) FROM r');
SELECT pg_temp.same('SELECT array_agg(ts ORDER BY n), array_agg(day ORDER BY n DESC), array_agg(m ORDER BY n), array_agg(u ORDER BY n), array_agg(k ORDER BY n), array_agg(x ORDER BY n) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY i, n), array_agg(n ORDER BY i DESC, n), array_agg(n ORDER BY i NULLS FIRST, n DESC), array_agg(n ORDER BY i DESC NULLS LAST, n) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY d, n), array_agg(n ORDER BY d DESC, n), array_agg(n ORDER BY f DESC, d NULLS FIRST, n) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY k, n), array_agg(n ORDER BY k COLLATE "C" DESC, n), array_agg(n ORDER BY x), array_agg(n ORDER BY x COLLATE "C" DESC), array_agg(n ORDER BY k NULLS FIRST, x DESC) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY b, n), array_agg(n ORDER BY b DESC NULLS LAST, n), array_agg(n ORDER BY u), array_agg(n ORDER BY m, n), array_agg(n ORDER BY m DESC, day, n), array_agg(n ORDER BY ts), array_agg(n ORDER BY day DESC, ts) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY upper(k), n), array_agg(upper(k) ORDER BY n % 100, n), array_agg(n ORDER BY length(k) DESC, i * 2 NULLS FIRST, n), array_agg(m * 2 ORDER BY n::numeric), array_agg(n ORDER BY k::bpchar, n) FROM r');
-- Other aggregates, whose states may depend on the order.
SELECT pg_temp.same('SELECT sum(d ORDER BY n) FILTER (WHERE d < 9), avg(f ORDER BY n DESC), sum(m ORDER BY n), stddev(f ORDER BY n), string_agg(k, '','' ORDER BY n), string_agg(k, g::text ORDER BY n DESC), min(x ORDER BY n), max(m ORDER BY n)::float8 FROM r');
SELECT pg_temp.same('SELECT json_agg(k ORDER BY n), jsonb_agg(i ORDER BY n DESC), json_object_agg(n, k ORDER BY n), jsonb_object_agg(g, n ORDER BY n), array_agg(array[i, g] ORDER BY n) FROM r');
SELECT pg_temp.same('SELECT array_agg(DISTINCT i ORDER BY i DESC), string_agg(DISTINCT k, '','' ORDER BY k DESC), sum(DISTINCT f ORDER BY f DESC) FROM r');
SELECT pg_temp.same('SELECT var_pop(f ORDER BY n), stddev_pop(f ORDER BY n), variance(DISTINCT f ORDER BY f), stddev(DISTINCT f ORDER BY f), corr(i, f ORDER BY n), regr_slope(i, f ORDER BY n) FROM r');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY x::name, n), array_agg(DISTINCT k::name), array_agg(n ORDER BY k::name DESC, n) FROM r');
SELECT pg_temp.same('SELECT array_agg(x ORDER BY point(n, 1) <-> point(0, 0)) FROM r');
SELECT pg_temp.same('SELECT lanes.ema(f, 3 ORDER BY n DESC), lanes.first(i, ts ORDER BY n), lanes.counter_increase(f, ts ORDER BY n DESC), lanes.vwap(f, i ORDER BY n) FROM r');
-- The order of exact sums, counts and extremes does not matter.
SELECT pg_temp.same('SELECT count(k ORDER BY n), sum(i ORDER BY n), sum(l ORDER BY k), avg(s ORDER BY n), min(d ORDER BY n), max(ts ORDER BY n), bool_or(b ORDER BY n), bit_or(i ORDER BY n), variance(i ORDER BY n) FROM r');
SELECT sum(i ORDER BY 1 / s) FROM r;
SELECT sum(i ORDER BY 1 / s) FILTER (WHERE s > 0) FROM r;
-- Groups, few and many.
SELECT pg_temp.same('SELECT g, array_agg(i ORDER BY n), string_agg(k, ''-'' ORDER BY n DESC) FILTER (WHERE b), count(*), sum(d ORDER BY n) FILTER (WHERE d < 9) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT k, date_trunc(''day'', ts), array_agg(n ORDER BY n), json_agg(x ORDER BY n DESC) FROM r GROUP BY 1, 2 HAVING count(*) > 1');
SELECT pg_temp.same('SELECT x, array_agg(n ORDER BY n), (array_agg(k ORDER BY n))[1] FROM r GROUP BY x');
SELECT pg_temp.same('SELECT g, array_agg(i ORDER BY n) FROM r GROUP BY g ORDER BY array_agg(i ORDER BY n DESC) LIMIT 2');
SELECT pg_temp.same('SELECT upper(k), array_agg(i ORDER BY n) FROM r GROUP BY 1');
SELECT pg_temp.same('SELECT array_agg(n ORDER BY n), (array_agg(n ORDER BY n))[1], string_agg(k, '','' ORDER BY n), count(*) FROM none');
SELECT pg_temp.same('SELECT g, array_agg(n ORDER BY n) FROM none GROUP BY g');
SELECT pg_temp.same('SELECT g, array_agg(n ORDER BY n) FILTER (WHERE n < 0), (array_agg(n ORDER BY n) FILTER (WHERE n < 500))[1] FROM r GROUP BY g');
-- The first element alone, and together with others.
SELECT pg_temp.same('SELECT g, (array_agg(i ORDER BY n DESC))[1], (array_agg(k ORDER BY n))[1], (array_agg(m ORDER BY ts DESC))[1], (array_agg(d ORDER BY i DESC NULLS LAST, n))[1], (array_agg(x ORDER BY d DESC, n DESC))[1] FROM r GROUP BY g');
SELECT pg_temp.same('SELECT (array_agg(i ORDER BY n))[1] + (array_agg(i ORDER BY n DESC))[1], (array_agg(b ORDER BY i, n))[1], (array_agg(i + g ORDER BY n))[1], (array_agg(upper(k) ORDER BY n))[1], (array_agg(n ORDER BY k, n))[1] FROM r');
SELECT pg_temp.same('SELECT g, (array_agg(i ORDER BY n))[1], (array_agg(i ORDER BY n))[2], (array_agg(l ORDER BY n))[1:2], (array_agg(n ORDER BY n))[1], array_agg(n ORDER BY n) FROM r GROUP BY g');
SELECT pg_temp.same('SELECT g FROM r GROUP BY g HAVING (array_agg(n ORDER BY n DESC))[1] > 8995 AND (array_agg(n ORDER BY n DESC))[2] > 0');
SELECT pg_temp.same('SELECT g, (array_agg(array[i, n] ORDER BY n))[1][2], (array_agg(array[i, n] ORDER BY n))[1] FROM r GROUP BY g');
SELECT pg_temp.same('SELECT date_trunc(''day'', ts), (array_agg(d ORDER BY ts))[1], max(d), min(d), (array_agg(d ORDER BY ts DESC))[1] FROM r GROUP BY 1');
SELECT (array_agg(1 / s ORDER BY n))[1] FROM r;
-- Rows that tie are taken in their order.
SELECT (SELECT array_agg(n ORDER BY s, b DESC) FROM r) = (SELECT array_agg(n ORDER BY s, b DESC, place) FROM (SELECT n, s, b, row_number() OVER () AS place FROM r) q) AS is_stable,
  (SELECT (array_agg(n ORDER BY day DESC))[1] FROM r) = (SELECT n FROM (SELECT n, day, row_number() OVER () AS place FROM r) q ORDER BY day DESC, place LIMIT 1) AS is_first;
-- Joins, sub-selects, partitions, and rescans.
SELECT pg_temp.same('SELECT name, array_agg(i ORDER BY n), (array_agg(k ORDER BY n DESC))[1] FROM r JOIN (VALUES (1, ''a''), (2, ''b''), (3, NULL)) AS j (id, name) ON id = g GROUP BY name');
SELECT pg_temp.same('SELECT sum(cardinality(a)) FROM (SELECT g, array_agg(i ORDER BY n) AS a FROM r GROUP BY g) q');
SELECT pg_temp.same('SELECT g, b, array_agg(i ORDER BY n), grouping(b) FROM r GROUP BY ROLLUP (g, b)');
SELECT o, (SELECT array_agg(n ORDER BY n DESC) FROM r WHERE n < o * 2) FROM generate_series(0, 3) o;
-- Sealed rows, and rows that exceed their memory.
SELECT lanes.seal('r') IS NOT NULL AS is_sealed;
SELECT pg_temp.same('SELECT g, array_agg(i ORDER BY n), string_agg(k, ''-'' ORDER BY k, n), (array_agg(x ORDER BY n DESC))[1] FROM r GROUP BY g');
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE TABLE many USING lanes AS SELECT i % 3 AS g, i * 7919 % 60013 AS i, md5(i::text) AS k FROM generate_series(1, 60000) i;
CREATE TABLE ordered_heap.many USING heap AS TABLE many;
SELECT pg_temp.same('SELECT g, md5(string_agg(k, '','' ORDER BY i)) FROM many GROUP BY g');
SELECT pg_temp.same('SELECT g, (array_agg(k ORDER BY i))[1] FROM many GROUP BY g');
-- Values of rows that are no longer the first of their groups are freed.
CREATE TABLE growing USING lanes AS SELECT i AS n, i % 1000 AS g, md5(i::text)::uuid AS u FROM generate_series(1, 200000) i;
CREATE TABLE ordered_heap.growing USING heap AS TABLE growing;
SELECT pg_temp.same('SELECT g, (array_agg(u ORDER BY n DESC))[1] FROM growing GROUP BY g');
-- The same in memory.
RESET work_mem;
SELECT pg_temp.same('SELECT g, md5(string_agg(k, '','' ORDER BY i)), md5(string_agg(k, '','' ORDER BY k DESC)) FROM many GROUP BY g');
-- Left to PostgreSQL, with the reason.
SELECT pg_temp.same('SELECT cardinality(array_agg(n ORDER BY random())) FROM r');
SELECT pg_temp.same('SELECT array_agg(v ORDER BY n) FROM r JOIN (VALUES (1, ''a''), (2, ''b'')) AS j (id, v) ON id = g');
SET client_min_messages = warning;
DROP SCHEMA ordered CASCADE; DROP SCHEMA ordered_heap CASCADE;

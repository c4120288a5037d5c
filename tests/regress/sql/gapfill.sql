-- Buckets without gaps: lanes.time_bucket_gapfill with locf and interpolate, over lanes tables and heap.
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET search_path = public, lanes;
CREATE TABLE l (ts timestamptz, k text, x float8, i int) USING lanes;
INSERT INTO l VALUES ('2026-01-01 00:10', 'a', 1, 10), ('2026-01-01 00:50', 'a', 3, 20), ('2026-01-01 03:00', 'a', 8, 40), ('2026-01-01 04:30', 'a', NULL, NULL),
  ('2026-01-01 02:00', 'b', 5, 7), ('2026-01-01 09:00', 'b', 6, 9), ('2025-12-31 22:00', 'b', 1, 1), (NULL, 'b', 99, 99), ('2026-01-01 01:00', NULL, 4, 4);
CREATE TABLE h USING heap AS TABLE l;
EXPLAIN (COSTS OFF) SELECT time_bucket_gapfill('1 hour', ts) AS hour, k, locf(avg(x)) FROM l WHERE ts >= '2026-01-01' AND ts < '2026-01-01 06:00' GROUP BY k, hour ORDER BY hour, k LIMIT 3;
EXPLAIN (COSTS OFF) SELECT time_bucket_gapfill('1 hour', ts) AS hour, k, locf(avg(x)) FROM h WHERE ts >= '2026-01-01' AND ts < '2026-01-01 06:00' GROUP BY hour, k;
-- A group by time alone, and the same by hand.
SELECT time_bucket_gapfill('1 hour', ts) AS hour, avg(x), count(*), locf(avg(x)), interpolate(avg(x)) FROM l WHERE k = 'a' AND ts >= '2026-01-01' AND ts < '2026-01-01 06:00' GROUP BY hour ORDER BY hour;
SELECT hour, avg(x), nullif(count(h), 0) AS count FROM generate_series('2026-01-01'::timestamptz, '2026-01-01 05:00', '1 hour') hour LEFT JOIN h ON time_bucket('1 hour', ts) = hour AND k = 'a' GROUP BY hour ORDER BY hour;
-- Several keys, several aggregates, expressions around them, HAVING.
SELECT k, time_bucket_gapfill('1 hour', ts) AS hour, round(locf(sum(i)) * 10) + 1 AS locf, interpolate(sum(i)) AS ints, interpolate(avg(i)) AS numerics, interpolate(sum(x)) + max(x) AS floats FROM l
  WHERE ts BETWEEN '2026-01-01' AND '2026-01-01 05:00' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT k, time_bucket_gapfill('1 hour', ts) AS hour, locf(max(x)) FROM h WHERE ts >= '2026-01-01' AND ts < '2026-01-01 04:00' GROUP BY hour, k HAVING max(x) > 3 AND time_bucket_gapfill('1 hour', ts) > '2026-01-01' ORDER BY k, hour DESC LIMIT 6;
-- Rows whose aggregate is NULL.
SELECT time_bucket_gapfill('1 hour', ts) AS hour, locf(avg(x)) AS as_is, locf(avg(x), true) AS missing, locf(avg(x), false) AS same FROM l WHERE k = 'a' AND ts >= '2026-01-01 03:00' AND ts < '2026-01-01 06:00' GROUP BY hour ORDER BY hour;
-- Arguments instead of conditions: rows out of range are kept, NULL too.
SELECT time_bucket_gapfill('3 hours', ts, start => '2026-01-01 00:30', finish => '2026-01-01 08:00') AS hours, sum(i), interpolate(sum(i)), locf(count(*)) FROM l WHERE k = 'b' GROUP BY hours ORDER BY hours;
SELECT time_bucket_gapfill('3 hours', ts, '2026-01-01 00:30'::timestamptz) AS hours, count(*) FROM h WHERE ts < '2026-01-01 08:00' GROUP BY 1 ORDER BY 1;
-- No rows: all buckets without other keys, none with them.
SELECT time_bucket_gapfill('2 hours', ts) AS hours, count(*), locf(avg(x)) FROM l WHERE k = 'none' AND ts >= '2026-01-01' AND ts < '2026-01-01 04:00' GROUP BY hours ORDER BY hours;
SELECT time_bucket_gapfill('2 hours', ts) AS hours, k, count(*) FROM l WHERE k = 'none' AND ts >= '2026-01-01' AND ts < '2026-01-01 04:00' GROUP BY hours, k;
-- Parameters, now(), and a condition with the sides exchanged.
PREPARE filled(timestamptz, interval) AS SELECT time_bucket_gapfill($2, ts) AS hour, locf(avg(x)) FROM l WHERE $1 <= ts AND ts < $1 + interval '4 hours' AND k = 'a' GROUP BY hour ORDER BY hour;
EXECUTE filled('2026-01-01', '1 hour'); EXECUTE filled('2026-01-01 02:00', '2 hours');
SET plan_cache_mode = force_generic_plan;
EXECUTE filled('2026-01-01', '2 hours');
RESET plan_cache_mode;
SELECT count(*) FROM (SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > now() - interval '1 day' AND ts <= now() GROUP BY 1) q WHERE count IS NULL;
-- Days and months in a time zone whose clocks change; hours that come twice.
SELECT time_bucket_gapfill('1 day', ts, 'Europe/Berlin', '2026-03-28'::timestamptz, '2026-03-31'::timestamptz) AS day, count(*) FROM l WHERE false GROUP BY day ORDER BY day;
SELECT time_bucket_gapfill('1 month', ts, 'Europe/Berlin', '2026-02-15'::timestamptz, '2026-05-15'::timestamptz) AS month, count(*) FROM l WHERE false GROUP BY month ORDER BY month;
SELECT time_bucket_gapfill('1 hour', ts, 'Europe/Berlin', '2026-10-24 23:00'::timestamptz, '2026-10-25 03:00'::timestamptz) AT TIME ZONE 'Europe/Berlin' AS hour FROM l WHERE false GROUP BY time_bucket_gapfill('1 hour', ts, 'Europe/Berlin', '2026-10-24 23:00'::timestamptz, '2026-10-25 03:00'::timestamptz);
SELECT b AS buckets_of_a_year, b = (SELECT count(DISTINCT time_bucket('6 hours', t, 'America/New_York')) FROM generate_series('2026-01-01 05:00'::timestamptz, '2027-01-01 04:59', '30 min') t) AS same
  FROM (SELECT count(*) AS b FROM (SELECT time_bucket_gapfill('6 hours', ts, 'America/New_York', '2026-01-01 05:00'::timestamptz, '2027-01-01 05:00'::timestamptz) FROM l WHERE false GROUP BY 1) q) q;
-- Other types of times.
SELECT time_bucket_gapfill('1 month', ts::date) AS month, count(*) FROM l WHERE ts::date > '2025-11-30' AND ts::date <= '2026-02-01' GROUP BY month ORDER BY month;
SELECT time_bucket_gapfill('12 hours', ts::timestamp) AS half, count(*) FROM l WHERE ts::timestamp >= '2025-12-31' AND ts::timestamp < '2026-01-02' GROUP BY half ORDER BY half;
SELECT time_bucket_gapfill(10, i) AS tens, locf(count(*)) FROM l WHERE i >= 5 AND i < 45 GROUP BY tens ORDER BY tens;
SELECT time_bucket_gapfill(10::bigint, i::bigint, start => -10, finish => 20) AS tens, count(*) FROM l GROUP BY tens ORDER BY tens;
-- Inside other queries: a view, a common table, a sub-select, a window function above, DISTINCT, UNION, a join, INSERT.
CREATE VIEW hours AS SELECT time_bucket_gapfill('1 hour', ts, start => '2026-01-01', finish => '2026-01-01 05:00') AS hour, k, locf(sum(i)) AS i FROM l WHERE ts >= '2026-01-01' GROUP BY hour, k;
SELECT * FROM hours WHERE hour > '2026-01-01 01:00' AND k = 'b' ORDER BY hour;
WITH recent AS (SELECT * FROM l WHERE k = 'a'), filled AS (SELECT time_bucket_gapfill('1 hour', ts, start => '2026-01-01', finish => '2026-01-01 03:00') AS hour, sum(i) FROM recent GROUP BY 1) SELECT * FROM filled ORDER BY hour;
SELECT time_bucket_gapfill('1 hour', ts) AS hour, locf(sum(i)), lag(locf(sum(i))) OVER (ORDER BY time_bucket_gapfill('1 hour', ts)) FROM l WHERE k = 'a' AND ts >= '2026-01-01' AND ts < '2026-01-01 03:00' GROUP BY hour ORDER BY hour;
SELECT DISTINCT locf(sum(i)) AS i FROM l WHERE k = 'a' AND ts >= '2026-01-01' AND ts < '2026-01-01 06:00' GROUP BY time_bucket_gapfill('1 hour', ts) ORDER BY i;
SELECT names.k, q.* FROM (VALUES ('a'), ('b')) names(k), LATERAL (SELECT time_bucket_gapfill('2 hours', ts) AS hours, sum(i) FROM l WHERE l.k = names.k AND ts >= '2026-01-01' AND ts < '2026-01-01 04:00' GROUP BY hours) q ORDER BY 1, 2;
CREATE TABLE kept (hour timestamptz, i bigint); INSERT INTO kept SELECT time_bucket_gapfill('1 hour', ts) AS hour, interpolate(sum(i)) FROM h WHERE k = 'a' AND ts >= '2026-01-01' AND ts < '2026-01-01 05:00' GROUP BY hour; TABLE kept;
-- Many groups against generate_series.
CREATE TABLE m (ts timestamptz, a int, b text, v int) USING lanes;
INSERT INTO m SELECT '2026-01-01'::timestamptz + (i * 7919 % 10000) * interval '1 min', i % 7, 'b' || i % 3, i FROM generate_series(1, 700) i;
WITH filled AS (SELECT a, b, time_bucket_gapfill('3 hours', ts, start => '2026-01-01', finish => '2026-01-08') AS t, sum(v) AS s, locf(sum(v)) AS l FROM m GROUP BY a, b, t),
  sums AS (SELECT a, b, time_bucket('3 hours', ts) AS t, sum(v) AS s FROM m GROUP BY 1, 2, 3),
  expected AS (SELECT a, b, t, s, (SELECT o.s FROM sums o WHERE (o.a, o.b) = (k.a, k.b) AND o.t <= g.t ORDER BY o.t DESC LIMIT 1) AS l
    FROM (SELECT DISTINCT a, b FROM m) k CROSS JOIN generate_series('2026-01-01'::timestamptz, '2026-01-07 21:00', '3 hours') g(t) LEFT JOIN sums USING (a, b, t))
  SELECT (SELECT count(*) FROM filled) AS rows, (SELECT count(*) FROM (TABLE filled EXCEPT TABLE expected) q) AS too_many, (SELECT count(*) FROM (TABLE expected EXCEPT TABLE filled) q) AS too_few;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT time_bucket_gapfill('1 day', ts, start => '2026-01-01', finish => '2026-02-01') AS day, sum(v) FROM m GROUP BY day;
-- Errors name what to do.
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > '2026-01-01' GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > '2026-01-02' AND ts < '2026-01-01' GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > '-infinity' AND ts < '2026-01-01' GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > NULL::timestamptz AND ts < '2026-01-01' GROUP BY 1;
SELECT time_bucket_gapfill('0 s', ts, start => '2026-01-01', finish => '2026-01-02'), count(*) FROM l GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts, start => ts, finish => '2026-01-02'), count(*) FROM l GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts) FROM l;
SELECT time_bucket_gapfill('1 hour', ts) + interval '1 s' FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1;
SELECT locf(avg(x)) FROM l;
SELECT locf(x) FROM l;
SELECT time_bucket_gapfill('1 hour', ts), locf(interpolate(avg(x))) FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1;
SELECT time_bucket_gapfill('1 hour', ts), k, avg(x) FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY ROLLUP (1, 2);
SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1 HAVING locf(avg(x)) > 1;
SELECT time_bucket_gapfill('1 hour', ts), (SELECT 1) FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1;
WITH n AS (SELECT 2 AS n) SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM l WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1 LIMIT (SELECT n FROM n);
WITH gone AS (DELETE FROM h WHERE k = 'b' RETURNING ts) SELECT time_bucket_gapfill('1 hour', ts), count(*) FROM gone WHERE ts > '2026-01-01' AND ts < '2026-01-02' GROUP BY 1;
-- A limit without WITH; keys that are several rows; limits of another type.
SELECT time_bucket_gapfill('1 hour', ts) AS hour, count(*) FROM l WHERE ts >= '2026-01-01' AND ts < '2026-01-02' AND k = 'a' GROUP BY 1 ORDER BY 1 LIMIT (SELECT 2);
SELECT time_bucket_gapfill('1 hour', ts) AS hour, unnest(ARRAY[1, 2]) AS n, sum(i) FROM l WHERE ts >= '2026-01-01' AND ts < '2026-01-01 02:00' AND k = 'a' GROUP BY 1, 2 ORDER BY 2, 1;
SELECT time_bucket_gapfill('1 day', ts::date) FROM l WHERE ts::date >= '2026-01-01' AND ts::date < timestamp '2026-01-02 12:00' GROUP BY 1;
-- A call of lanes.gapfill that does not fit its sub-select fills nothing.
SELECT x FROM (SELECT max(k) AS x, lanes.gapfill('b sf'::text, interval '1 us', NULL::text, 140000000000000::int8, 140000000000001::int8) FROM h OFFSET 0) g;
SELECT x FROM (SELECT max(i) AS x, lanes.gapfill('b sf'::text, interval '1 us', NULL::text, 1::int8, 3::int8) FROM h OFFSET 0) g;
SELECT x FROM (SELECT max(ts) AS x, lanes.gapfill('b sf'::text, 1, NULL::text, 'x'::text, 'y'::text) FROM h OFFSET 0) g;
SELECT x FROM (SELECT max(ts) AS x, lanes.gapfill('bb sf'::text, interval '1 us', NULL::text, now(), now()) FROM h OFFSET 0) g;
DROP VIEW hours; DROP TABLE l, h, kept, m;

-- SQL functions over times and values, on lanes tables and on heap, in PostgreSQL's plans.
SET TimeZone = 'UTC';
SET DateStyle = 'ISO, YMD';
-- time_bucket with fixed widths. Weeks start on Monday. A bucket starts at or before its values,
-- also before the origin.
SELECT w, t, lanes.time_bucket(w::interval, t::timestamptz) AS tz, lanes.time_bucket(w::interval, t::timestamp) AS local,
       lanes.xbar(w::interval, t::timestamptz) = lanes.time_bucket(w::interval, t::timestamptz) AS same
FROM (VALUES ('1 minute', '2024-05-06 07:08:09.123456'), ('60.000s', '2024-05-06 07:08:59.999999'), ('1 week', '2024-05-05 23:59:59.999999'),
             ('1 week', '2024-05-06'), ('7 days', '1999-12-31 12:00'), ('5 minutes', '1969-12-31 23:59:59'), ('1 day', '0044-03-15 12:00 BC'),
             ('1 microsecond', '2024-05-06 07:08:09.123456'), ('37 seconds', '2000-01-03'), ('1 day 06:00', '2000-01-02 23:00'),
             ('1 day -01:00', '2000-01-03 23:30'), ('1 minute', 'infinity'), ('1 month', '-infinity')) v (w, t);
-- Months start at 2000-01-01.
SELECT w, t, lanes.time_bucket(w::interval, t::timestamptz) AS tz, lanes.time_bucket(w::interval, t::date) AS day
FROM (VALUES ('1 month', '2024-02-29 23:59:59'), ('3 months', '2024-05-06'), ('1 year', '1999-12-31 23:59'), ('10 years', '2024-05-06'),
             ('5 months', '1999-12-31'), ('1 century', '1950-06-01'), ('1 month', '0001-12-31 BC')) v (w, t);
SELECT lanes.time_bucket('7 days', d) AS week, lanes.time_bucket('1 day', d) = d AS day, lanes.time_bucket('24:00', d) = d AS hours
FROM (VALUES (date '2024-05-05'), (date '2024-05-06'), (date 'infinity'), (date '-infinity')) v (d);
-- With an origin.
SELECT lanes.time_bucket('1 hour', timestamptz '2024-05-06 07:08', timestamptz '2024-01-01 00:15') AS tz,
       lanes.time_bucket('1 hour', timestamp '2024-05-06 07:08', timestamp '2030-01-01 00:15') AS local,
       lanes.time_bucket('7 days', date '2024-05-06', date '2024-01-07') AS sunday,
       lanes.time_bucket('3 months', timestamptz '2024-05-06', timestamptz '2024-02-01') AS quarter,
       lanes.time_bucket('1 year', date '2024-05-06', date '2023-07-01') AS fiscal,
       lanes.time_bucket('1 week', timestamptz '2024-05-06', origin => '2024-05-05') AS named;
-- In a time zone: days of 23 and of 25 hours; an hour that occurs twice is two buckets; a start
-- that the clock skips.
SELECT t, lanes.time_bucket('1 day', t, 'Europe/Berlin') AS day, lanes.time_bucket('1 hour', t, 'Europe/Berlin') AS hour,
       lanes.time_bucket('2 hours', t, 'Europe/Berlin') AS two_hours, lanes.time_bucket('1 month', t, 'Europe/Berlin') AS month,
       lanes.time_bucket('1 week', t, timezone => 'Europe/Berlin') AS week
FROM (VALUES (timestamptz '2024-03-30 22:59:59+00'), ('2024-03-30 23:00+00'), ('2024-03-31 00:59+00'), ('2024-03-31 01:00+00'), ('2024-03-31 21:59+00'),
             ('2024-03-31 22:00+00'), ('2024-10-26 22:00+00'), ('2024-10-27 00:30+00'), ('2024-10-27 01:30+00'), ('2024-10-27 22:59+00'),
             ('2024-10-27 23:00+00'), ('infinity')) v (t);
-- A midnight that is skipped (Sao Paulo), and one that occurs twice (Havana).
SELECT lanes.time_bucket('1 day', t, 'America/Sao_Paulo') AS sao_paulo FROM (VALUES (timestamptz '2018-11-04 02:59+00'), ('2018-11-04 03:00+00')) v (t);
SELECT lanes.time_bucket('1 day', t, 'America/Havana') AS havana FROM (VALUES (timestamptz '2023-11-05 03:59+00'), ('2023-11-05 04:30+00'), ('2023-11-05 05:30+00')) v (t);
SELECT lanes.xbar('1 day', timestamptz '2024-05-06 20:00', '+05:30') AS offset_is_west, lanes.xbar('1 day', timestamptz '2024-05-06 20:00', 'EST') AS abbreviation;
-- The results equal those of PostgreSQL's functions where both are defined: 30 years of changing
-- offsets, and thousands of fixed widths on both sides of the origin.
SELECT z, count(*) AS days, bool_and(lanes.time_bucket('1 day', t, z) = date_trunc('day', t, z)) AS day, bool_and(lanes.time_bucket('1 week', t, z) = date_trunc('week', t, z)) AS week,
       bool_and(lanes.time_bucket('1 month', t, z) = date_trunc('month', t, z)) AS month, bool_and(lanes.time_bucket('1 hour', t, z) = date_trunc('hour', t, z)) AS hour
FROM (VALUES ('Europe/Berlin'), ('America/New_York'), ('Asia/Kolkata'), ('UTC')) z (z), generate_series(timestamptz '1995-01-01 00:17', '2025-01-01', '7 hours') t GROUP BY z ORDER BY z;
SELECT count(*), bool_and(lanes.time_bucket(w, t) = date_bin(w, t, '2000-01-03')) AS bins, bool_and(lanes.time_bucket(w, t, o) = date_bin(w, t, o)) AS origins
FROM (SELECT i * interval '7.654321 s' AS w, timestamptz '2000-01-01' + ((i * 7919) % 100003 - 50000) * interval '5432.123 s' AS t,
             timestamptz '2010-01-01' + ((i * 104729) % 100003 - 50000) * interval '1234.567 s' AS o FROM generate_series(1, 5000) i) s;
-- The session's time zone does not matter.
SET TimeZone = 'America/New_York';
SELECT lanes.time_bucket('1 day', timestamptz '2024-05-06 20:00+00') AT TIME ZONE 'UTC' AS utc,
       lanes.time_bucket('1 day', timestamptz '2024-05-06 20:00+00', 'Asia/Tokyo') AT TIME ZONE 'UTC' AS tokyo;
SET TimeZone = 'UTC';
-- Integers.
SELECT i, lanes.time_bucket(10, i) AS int4, lanes.time_bucket(10::bigint, i::bigint) AS int8, lanes.xbar(10, i::smallint) AS int2, lanes.time_bucket('10', i) AS literal
FROM (VALUES (-11), (-10), (-1), (0), (9), (10)) v (i);
-- The result for NULL is NULL.
SELECT lanes.time_bucket(NULL, now()) IS NULL, lanes.time_bucket('1 day', NULL::date) IS NULL, lanes.time_bucket('1 day', now(), NULL::timestamptz) IS NULL;
-- Unqualified calls, as Grafana sends them.
SET search_path = public, lanes;
SELECT time_bucket('60.000s', timestamptz '2024-05-06 07:08:59.9') AS grafana, xbar('1 day', timestamp '2024-05-06 12:00') AS xbar;
RESET search_path;
-- Refused arguments.
SELECT lanes.time_bucket('0', now());
SELECT lanes.time_bucket('-1 month', now());
SELECT lanes.time_bucket('1 month 1 day', now());
SELECT lanes.time_bucket('200000000 days', now());
SELECT lanes.time_bucket('1 hour', current_date);
SELECT lanes.time_bucket('1 hour', now(), timestamptz 'infinity');
SELECT lanes.time_bucket('1 month', now(), timestamptz '2024-01-02');
SELECT lanes.time_bucket('1 hour', now(), 'Europe/Nowhere');
SELECT lanes.time_bucket('1 hour', timestamptz 'infinity', 'Europe/Nowhere');
SELECT lanes.time_bucket('8 days', timestamp '4714-11-24 00:00 BC');
-- A third argument without a type is a time zone. An origin needs a type or the argument's name.
SELECT lanes.time_bucket('1 day', now(), '2024-01-01');
SELECT lanes.time_bucket('1 month', date '4714-11-24 BC');
SELECT lanes.time_bucket(10, (-2147483648)::int);
SELECT lanes.time_bucket(10, (-9223372036854775808)::bigint);
SELECT lanes.time_bucket(0, 5);
-- Aggregates over the same rows in a lanes table and in a heap table.
CREATE TABLE l (i int, k text, ts timestamptz, x float8, v float8, s text) USING lanes;
INSERT INTO l VALUES (1, 'a', '2024-01-01 00:03', 10, 1, 'three'), (2, 'a', '2024-01-01 00:01', 20, 2, 'one'), (3, 'a', '2024-01-01 00:01', 30, NULL, 'one again'),
                     (4, 'a', NULL, 40, 4, 'never'), (5, 'a', '2024-01-01 00:03', NULL, 5, NULL), (6, 'b', '2024-01-01 00:02', NULL, 0, NULL),
                     (7, 'b', '-infinity', 'NaN', 0, 'least'), (8, 'b', 'infinity', '-0', 0, 'greatest'), (9, 'c', NULL, 1, 1, 'c');
CREATE TABLE h USING heap AS TABLE l;
SELECT k, lanes.first(x, ts), lanes.last(x, ts), lanes.first(s, ts) AS first_s, lanes.last(s, ts) AS last_s, lanes.first(i, ts) AS fi, lanes.last(i, ts) AS la,
       lanes.vwap(x, v), lanes.ema(x, 3 ORDER BY i) AS ema FROM l GROUP BY k ORDER BY k;
SELECT k, lanes.first(x, ts), lanes.last(x, ts), lanes.first(s, ts) AS first_s, lanes.last(s, ts) AS last_s, lanes.first(i, ts) AS fi, lanes.last(i, ts) AS la,
       lanes.vwap(x, v), lanes.ema(x, 3 ORDER BY i) AS ema FROM h GROUP BY k ORDER BY k;
-- No rows; FILTER; DISTINCT; an order that breaks ties.
SELECT lanes.first(x, ts), lanes.last(s, ts), lanes.vwap(x, v), lanes.ema(x, 0.5) FROM l WHERE false;
SELECT lanes.first(s, ts) FILTER (WHERE i > 1) AS first, lanes.last(s, ts) FILTER (WHERE i > 100) AS last, lanes.vwap(x, v) FILTER (WHERE i < 3) AS vwap,
       lanes.ema(x, 0.5 ORDER BY i) FILTER (WHERE x > 15) AS ema FROM l WHERE k = 'a';
SELECT lanes.first(i, ts ORDER BY i DESC) AS first, lanes.last(i, ts ORDER BY i DESC) AS last, lanes.vwap(DISTINCT 2.0, 3) AS vwap FROM l WHERE k = 'a';
-- Times of every type. NaN is the greatest float, and both zeros are equal.
SELECT lanes.first(i, ts::timestamp), lanes.last(i, ts::date), lanes.first(i, i::bigint) AS first8, lanes.last(i, i) AS last4, lanes.last(i, i::smallint) AS last2 FROM l WHERE i <= 3;
SELECT lanes.first(v, t) AS first, lanes.last(v, t) AS last FROM (VALUES (1, 'NaN'::float8), (2, '-0'), (3, '0'), (4, 'NaN'), (5, '-0')) w (v, t);
SELECT lanes.first(v, t) AS first FROM (VALUES (1, 'NaN'::float8), (2, '-0'), (3, '0'), (4, '-infinity'), (5, 'infinity')) w (v, t);
-- Values of any type: by reference, of varying length, arrays, rows, out of line.
SELECT lanes.first(v, i) AS first, lanes.last(v, i) AS last FROM (SELECT i, repeat('x', i % 7) || i AS v FROM generate_series(1, 100) i) w;
SELECT lanes.last(ARRAY[i, i + 1], i) AS array, lanes.last((i, 'a')::text, i) AS row, lanes.last(make_interval(mins => i), i) AS interval, lanes.last(i::numeric, -i) AS numeric FROM generate_series(1, 10) i;
CREATE TABLE wide (i int, v text) USING heap;
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
INSERT INTO wide SELECT i, repeat(i::text, 5000) FROM generate_series(1, 3) i;
SELECT length(lanes.first(v, i)), left(lanes.last(v, i), 3), md5(lanes.last(v, -i)) = md5(repeat('1', 5000)) AS same FROM wide;
SELECT lanes.first(NULL, 1);
-- The results equal those of sorting, including ties and NULLs.
WITH r AS (SELECT i, i % 7 AS k, nullif((i * 7919) % 61, 0) AS t, nullif(repeat('v', i % 40) || i, 'vvv43') AS v FROM generate_series(1, 2000) i)
SELECT count(*), bool_and(f IS NOT DISTINCT FROM a[1]) AS first, bool_and(l IS NOT DISTINCT FROM a[cardinality(a)]) AS last
FROM (SELECT lanes.first(v, t ORDER BY i) AS f, lanes.last(v, t ORDER BY i) AS l, array_agg(v ORDER BY t, i) FILTER (WHERE t IS NOT NULL) AS a FROM r GROUP BY k) s;
-- Window functions, whose earlier results must not change.
SELECT i, lanes.first(s, ts) OVER w AS first, lanes.last(s, ts) OVER w AS last, lanes.last(x, ts) OVER w AS last_x, lanes.vwap(x, v) OVER w AS vwap FROM l WHERE k = 'a' WINDOW w AS (ORDER BY i) ORDER BY i;
SELECT i, lanes.last(s, ts) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM h WHERE k = 'a' ORDER BY i;
-- vwap is sum(price * volume) / nullif(sum(volume), 0).
SELECT n, lanes.vwap(p, v), sum(p * v) / nullif(sum(v), 0) AS spelt_out
FROM (VALUES (1, 10.0::float8, 1::float8), (1, 20, 3), (2, 5, 0), (3, 'infinity', 1), (3, 1, 1), (4, 'NaN', 1), (5, 1, 'infinity'), (6, '-0', 2), (7, 3, -1), (7, 3, 1), (8, 0, 'NaN')) w (n, p, v) GROUP BY n ORDER BY n;
SELECT lanes.vwap(p, v) FROM (VALUES (1, 2), (3, 4)) w (p, v);
SELECT lanes.vwap(p, v) FROM (VALUES (1.5, 2::real), (3.5, 4)) w (p, v);
SELECT lanes.vwap(1e200, 1e200);
SELECT lanes.vwap(1e-200, 1e-200);
SELECT lanes.vwap(v, 1) FROM (VALUES (1.7e308::float8), (1.7e308)) w (v);
SELECT lanes.vwap(p, v) FROM (VALUES (1e308::float8, 1::float8), (1, -0.999)) w (p, v);
-- ema is seeded by the first value, keeps its value over NULLs, and has one value per row over a
-- window.
SELECT i, x, lanes.ema(x, 0.5) OVER w AS alpha, lanes.ema(x, 3) OVER w AS span, lanes.ema(x, alpha => 0.25) OVER w AS named_alpha, lanes.ema(x, span => 1) OVER w AS named_span
FROM (VALUES (1, NULL::float8), (2, 8), (3, NULL), (4, 4), (5, 16)) v (i, x) WINDOW w AS (ORDER BY i) ORDER BY i;
SELECT k, i, lanes.ema(v, span => 3) OVER (PARTITION BY k ORDER BY i) FROM l ORDER BY k, i;
SELECT x, lanes.ema(x, 0.5) OVER (ORDER BY i) AS half, lanes.ema(x, 1) OVER (ORDER BY i) AS whole
FROM (VALUES (1, 1e308::float8), (2, -1e308), (3, 'infinity'), (4, 1), (5, '-infinity'), (6, 2), (7, 'NaN'), (8, 3)) v (i, x) ORDER BY i;
SELECT lanes.ema(i, 2 ORDER BY i) AS int4, lanes.ema(i::numeric, 0.5 ORDER BY i) AS num, lanes.ema(i::real, 2 ORDER BY i DESC) AS down FROM generate_series(1, 4) i;
-- The recurrence of ema.
WITH RECURSIVE r AS (
    SELECT 1 AS i, x AS e FROM v WHERE i = 1 UNION ALL SELECT v.i, 2.0::float8 / 8 * v.x + (1 - 2.0::float8 / 8) * r.e FROM r JOIN v ON v.i = r.i + 1
), v AS (SELECT i, sin(i) AS x FROM generate_series(1, 200) i)
SELECT count(*), bool_and(e = w.ema) AS equal FROM r JOIN (SELECT i, lanes.ema(x, 7) OVER (ORDER BY i) AS ema FROM v) w USING (i);
SELECT lanes.ema(x, 0.0) FROM l;
SELECT lanes.ema(x, 1.5) FROM l;
SELECT lanes.ema(x, 'NaN'::float8) FROM l;
SELECT lanes.ema(x, 0) FROM l;
SELECT lanes.ema(x, NULL::float8) FROM l;
SELECT lanes.ema(x, NULL::int) FROM l;
SELECT lanes.ema(x, i) FROM l;
SELECT lanes.ema(x, 1.0 / i) FROM l;
SELECT lanes.ema(x, 100::bigint) FROM l;
-- PostgreSQL accepts named arguments of aggregates only in window calls.
SELECT lanes.ema(x, span => 3) FROM l;
-- delta and rate: relative to the previous row that counts.
SELECT k, i, x, lanes.delta(x) OVER w AS delta, lanes.delta(i * 1000000000000) OVER w AS int8, lanes.delta(i) OVER w AS int4, pg_typeof(lanes.delta(i) OVER w)
FROM l WINDOW w AS (PARTITION BY k ORDER BY i) ORDER BY k, i;
SELECT i, lanes.delta(x) OVER (ORDER BY i) AS up, lanes.delta(x) OVER (ORDER BY i DESC) AS down
FROM (VALUES (1, 1::float8), (2, 'infinity'), (3, 'infinity'), (4, 0), (5, 'NaN'), (6, 1), (7, NULL), (8, 3)) v (i, x) ORDER BY i;
SELECT i, lanes.rate(x, ts) OVER (ORDER BY i)
FROM (VALUES (1, 10::float8, timestamptz '2024-01-01 00:00'), (2, 40, '2024-01-01 00:00:10'), (3, 5, '2024-01-01 00:00:20'), (4, 5, '2024-01-01 00:00:20'),
             (5, 6, '2024-01-01 00:00:19'), (6, NULL, '2024-01-01 00:00:25'), (7, 7, NULL), (8, 8, 'infinity'), (9, 12, '2024-01-01 00:00:22.5'),
             (10, 'NaN', '2024-01-01 00:00:30'), (11, 1, '2024-01-01 00:00:40'), (12, 'infinity', '2024-01-01 00:00:50'), (13, 0, '2024-01-01 00:00:51')) v (i, x, ts) ORDER BY i;
SELECT lanes.delta(x) OVER (ORDER BY x DESC) FROM (VALUES (2147483647), (-2)) v (x);
SELECT lanes.delta(x) OVER (ORDER BY x DESC) FROM (VALUES (9223372036854775807), (-2)) v (x);
SELECT lanes.delta(x) OVER (ORDER BY x DESC) FROM (VALUES (1e308::float8), (-1e308)) v (x);
SELECT lanes.delta(1);
SELECT lanes.rate(1, now());
-- A long partition.
SELECT count(*), sum(d) FROM (SELECT lanes.delta(i) OVER (ORDER BY i) AS d FROM generate_series(1, 20000) i) s;
-- The support functions of aggregates cannot be called.
SELECT lanes.vwap_transition('{1,2}', 1, 1);
SELECT lanes.vwap_transition('{1,2,NULL}', 1, 1);
SELECT lanes.vwap_final(lanes.vwap_combine(lanes.vwap_transition('{0,0,0}', 10, 1), '{2,90,3}'));
-- Parallel plans combine the workers' states.
CREATE TABLE big (i int, ts timestamptz, p float8, s text) USING heap WITH (parallel_workers = 2);
INSERT INTO big SELECT i, timestamptz '2024-01-01' + (i * 7919 % 10007) * interval '1 second', i % 8, CASE WHEN i % 3 > 0 THEN 's' || i END FROM generate_series(1, 10006) i;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
EXPLAIN (COSTS OFF) SELECT lanes.first(s, ts), lanes.last(s, ts), lanes.first(i, ts), lanes.last(i, ts), lanes.vwap(p, i) FROM big;
SELECT lanes.first(s, ts), lanes.last(s, ts), lanes.first(i, ts), lanes.last(i, ts), lanes.vwap(p, i) FROM big;
SELECT i % 3 AS m, lanes.first(s, ts), lanes.last(s, ts), lanes.last(ARRAY[s], ts), lanes.vwap(p, i) FROM big GROUP BY 1 ORDER BY 1;
SELECT lanes.first(s, ts), lanes.last(i, ts), lanes.vwap(p, i) FROM big WHERE i < 0;
SELECT lanes.time_bucket('1 hour', ts) AS hour, count(*) FROM big GROUP BY 1 ORDER BY 1;
SET max_parallel_workers_per_gather = 0;
SELECT lanes.first(s, ts), lanes.last(s, ts), lanes.first(i, ts), lanes.last(i, ts), lanes.vwap(p, i) FROM big;
SELECT i % 3 AS m, lanes.first(s, ts), lanes.last(s, ts), lanes.last(ARRAY[s], ts), lanes.vwap(p, i) FROM big GROUP BY 1 ORDER BY 1;
RESET ALL;
-- Every function is declared with its volatility and parallel safety.
SELECT proname, prokind, provolatile, proparallel, count(*) FROM pg_proc WHERE pronamespace = 'lanes'::regnamespace
   AND proname IN ('time_bucket', 'xbar', 'first', 'last', 'vwap', 'ema', 'delta', 'rate') GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;
DROP TABLE l, h, wide, big;

-- Aggregates in the order of time: counters with restarts and averages over time. Histograms and candlesticks.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (ts timestamptz, k text, c float8, i int, late timestamptz, loose timestamp) USING lanes;
-- A counter that restarts every 700 rows, with NULL and NaN between; times of which some come late.
INSERT INTO l SELECT '2026-01-01'::timestamptz + i * interval '1 s', 'k' || i % 3,
  CASE WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN 'NaN'::float8 ELSE i % 700 * 3 END, i,
  '2026-01-01'::timestamptz + (i * 7919 % 10007) * interval '1 s', '2026-01-01'::timestamp + i * interval '10 ms' FROM generate_series(0, 9999) i;
INSERT INTO l VALUES ('infinity', 'k0', 5, 1, '-infinity', NULL), (NULL, 'k0', 1e6, 1, NULL, 'infinity'), ('2026-01-01 03:00', 'k3', 7, 1, '2026-01-01 03:00', '2026-01-01');
CREATE TABLE h USING heap AS TABLE l;
EXPLAIN (COSTS OFF) SELECT k, lanes.counter_increase(c, ts), lanes.counter_rate(c, ts) FILTER (WHERE i > 5), lanes.time_weight(c, ts, 'linear'), lanes.histogram(c, 0, 2000, 4) FROM l GROUP BY k;
SET lanes.vectorize = require;
SELECT k, lanes.counter_increase(c, ts) AS increase, lanes.counter_rate(c, ts) AS rate, lanes.counter_increase(c, late) AS late, lanes.counter_rate(c, loose) FILTER (WHERE i % 5 > 1) AS loose FROM l GROUP BY k ORDER BY k;
SELECT k, lanes.counter_increase(c, ts) AS increase, lanes.counter_rate(c, ts) AS rate, lanes.counter_increase(c, late) AS late, lanes.counter_rate(c, loose) FILTER (WHERE i % 5 > 1) AS loose FROM h GROUP BY k ORDER BY k;
SELECT k, lanes.time_weight(i, ts) AS locf, lanes.time_weight(i, ts, 'linear') AS linear, lanes.time_weight(i, late, 'locf') AS late, lanes.time_weight(c, ts) AS has_nan FROM l GROUP BY k ORDER BY k;
SELECT k, lanes.time_weight(i, ts) AS locf, lanes.time_weight(i, ts, 'linear') AS linear, lanes.time_weight(i, late, 'locf') AS late, lanes.time_weight(c, ts) AS has_nan FROM h GROUP BY k ORDER BY k;
SELECT k, lanes.histogram(c, 100, 2000, 4), lanes.histogram(i, 0, 10000, 1) FILTER (WHERE i > 9000) AS filtered FROM l GROUP BY k ORDER BY k;
SELECT k, lanes.histogram(c, 100, 2000, 4), lanes.histogram(i, 0, 10000, 1) FILTER (WHERE i > 9000) AS filtered FROM h GROUP BY k ORDER BY k;
-- The definitions, in SQL.
RESET lanes.vectorize;
WITH steps AS (SELECT k, c, ts, lag(c) OVER w AS before, lag(ts) OVER w AS since FROM h
    WHERE c IS NOT NULL AND c <> 'NaN' AND isfinite(ts) WINDOW w AS (PARTITION BY k ORDER BY ts))
  SELECT k, sum(CASE WHEN before IS NULL THEN 0 WHEN c < before THEN c ELSE c - before END) AS increase,
    sum(CASE WHEN before IS NULL THEN 0 WHEN c < before THEN c ELSE c - before END) / nullif(extract(epoch FROM max(ts) - min(ts))::float8, 0) AS rate
  FROM steps GROUP BY k ORDER BY k;
WITH steps AS (SELECT k, i, extract(epoch FROM lead(ts) OVER w - ts)::float8 AS lasts, lead(i) OVER w AS next FROM h
    WHERE isfinite(ts) WINDOW w AS (PARTITION BY k ORDER BY ts))
  SELECT k, sum(i * lasts) / nullif(sum(lasts), 0) AS locf, sum((i + next) / 2.0 * lasts) / nullif(sum(lasts), 0) AS linear FROM steps GROUP BY k ORDER BY k;
SELECT k, array_agg(n ORDER BY place) FROM (SELECT k, place, count(c) AS n FROM generate_series(0, 5) place CROSS JOIN (SELECT DISTINCT k FROM h) keys
    LEFT JOIN h USING (k) WHERE CASE WHEN c = 'NaN' THEN 5 ELSE width_bucket(c, 100, 2000, 4) END = place GROUP BY k, place) counts GROUP BY k ORDER BY k;
-- More rows than fit into work_mem, in order, out of order, and ordered by the call.
SET work_mem = '64kB';
SELECT lanes.counter_increase(c, ts), lanes.counter_increase(c, late) AS late, lanes.counter_increase(c, late ORDER BY late) AS ordered, lanes.counter_rate(c, late) AS shared FROM h WHERE k < 'k3';
SELECT lanes.counter_increase(c, ts), lanes.counter_increase(c, late) AS late, lanes.counter_increase(c, late ORDER BY late) AS ordered, lanes.counter_rate(c, late) AS shared FROM l WHERE k < 'k3';
SET lanes.vectorize = off;
SELECT k, lanes.counter_increase(c, late) AS late, lanes.time_weight(i, late, 'linear') FROM l GROUP BY k ORDER BY k;
SELECT lanes.counter_increase(c, late) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) FROM h WHERE k < 'k3' ORDER BY i DESC LIMIT 1;
RESET lanes.vectorize;
-- A sort that nobody asks for is freed.
SELECT count(*) FROM (SELECT k, lanes.counter_increase(c, late) FROM h WHERE k < 'k3' GROUP BY k LIMIT 1) first;
-- Over windows: frames that move; more rows than work_mem in order.
SELECT lanes.counter_increase(c, ts) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING) FROM h WHERE k < 'k3' ORDER BY i DESC LIMIT 2;
RESET work_mem;
SELECT i, c, lanes.counter_increase(c, ts) OVER w AS increase, lanes.time_weight(c, ts) OVER w AS weight FROM h WHERE i BETWEEN 696 AND 704 AND k < 'k3'
  WINDOW w AS (ORDER BY ts RANGE '3 s' PRECEDING) ORDER BY i;
SELECT i, lanes.counter_increase(c, late) OVER (ORDER BY i ROWS 5 PRECEDING) FROM h WHERE i BETWEEN 1 AND 8 AND k < 'k3' ORDER BY i;
-- Of equal times, the row that came first is first. No time passes: no rate and no average.
SELECT lanes.counter_increase(v, '2026-01-01'::timestamptz), lanes.counter_rate(v, '2026-01-01'::timestamptz), lanes.time_weight(v, '2026-01-01'::timestamptz) FROM (VALUES (1, 5), (2, 3), (3, 4)) t(o, v);
-- One row, no rows, only NULL.
SELECT lanes.counter_increase(c, ts), lanes.counter_rate(c, ts), lanes.time_weight(c, ts), lanes.histogram(c, 0, 1, 1) FROM l WHERE i = 14;
SELECT lanes.counter_increase(c, ts), lanes.counter_rate(c, ts), lanes.time_weight(c, ts), lanes.histogram(c, 0, 1, 1) FROM l WHERE i < 0;
SELECT lanes.counter_increase(c, ts), lanes.counter_rate(c, ts), lanes.time_weight(c, ts), lanes.histogram(c, 0, 1, 1) FROM h WHERE i < 0;
SELECT lanes.counter_increase(c, ts), lanes.counter_rate(c, ts), lanes.time_weight(c, ts), lanes.histogram(c, 0, 1, 1) FROM l WHERE i = 11;
-- Infinities stay, overflow is an error.
SELECT lanes.counter_increase(v, ts) AS increase, lanes.counter_rate(v, ts), lanes.time_weight(v, ts), lanes.time_weight(v, ts, 'linear') AS linear FROM (VALUES (1::float8, now()), ('Infinity', now() + interval '1 s')) t(v, ts);
SELECT lanes.counter_increase(v, ts) FROM (VALUES (1e308, now()), (1, now() + interval '1 s'), (1e308, now() + interval '2 s'), (1, now() + interval '3 s')) t(v, ts);
SELECT lanes.time_weight(1e308, ts) FROM h;
SELECT lanes.time_weight(1e308, ts) FROM (SELECT ts FROM h LIMIT 1) t;
SELECT lanes.time_weight(c * 1e305, ts) FROM l;
-- Illegal arguments.
SELECT lanes.time_weight(c, ts, 'cubic') FROM h;
SELECT lanes.time_weight(c, ts, NULL) FROM l;
SELECT lanes.time_weight(c, ts, CASE WHEN i < 9 THEN 'locf' ELSE 'linear' END) FROM h;
SELECT lanes.histogram(c, 1, 1, 4) FROM l;
SELECT lanes.histogram(c, 'NaN', 1, 4) FROM h;
SELECT lanes.histogram(c, 0, 1, 0) FROM h;
SELECT lanes.histogram(c, 0, 1, 100001) FROM h;
SELECT lanes.histogram(c, NULL, 1, 4) FROM h;
SELECT lanes.histogram(c, 0, i, 4) FROM h WHERE i > 0;
SELECT array_length(lanes.histogram(c, 0, 1, 100000), 1) FROM l;
-- Forms that PostgreSQL computes.
EXPLAIN (COSTS OFF) SELECT lanes.counter_increase(c, ts ORDER BY ts DESC) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.time_weight(c, ts, k) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.histogram(c, 0, i, 4) FROM l;
-- EXPLAIN reports that late rows were sorted.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT lanes.counter_increase(c, late) FROM l;
-- Candlesticks.
SELECT k, (lanes.candlestick(ts, c, i)).* FROM h WHERE c <> 'NaN' AND isfinite(ts) GROUP BY k ORDER BY k;
SELECT k, (lanes.candlestick(ts, c, i)).* FROM l WHERE c <> 'NaN' AND isfinite(ts) GROUP BY k ORDER BY k;
SELECT k, lanes.first(c, ts) AS open, max(c) AS high, min(c) AS low, lanes.last(c, ts) AS close, sum(i) AS volume, lanes.vwap(c, i) FROM l WHERE c <> 'NaN' AND isfinite(ts) GROUP BY k ORDER BY k;
SELECT (lanes.candlestick(late, c, NULL) FILTER (WHERE i < 100)).* FROM h;
SELECT lanes.candlestick(ts, c, i) FROM h WHERE i < 0;
SELECT lanes.candlestick(ts, c, 0) FROM h WHERE i = 5;
-- Histograms and candlesticks of workers are combined.
CREATE TABLE p (ts timestamptz, v float8); INSERT INTO p SELECT '2026-01-01'::timestamptz + i * interval '1 s', i % 1000 FROM generate_series(0, 49999) i; ANALYZE p;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2;
EXPLAIN (COSTS OFF) SELECT lanes.histogram(v, 0, 1000, 4), lanes.candlestick(ts, v, 1) FROM p;
SELECT lanes.histogram(v, 0, 1000, 4), lanes.candlestick(ts, v, 1) FROM p;
EXPLAIN (COSTS OFF) SELECT lanes.counter_increase(v, ts) FROM p;
SELECT lanes.counter_increase(v, ts) FROM p;
DROP TABLE l, h, p;

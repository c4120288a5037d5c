-- lanes.ema as a vectorised aggregate: in row order, by time, and by time with late rows. The
-- results are compared with heap.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (ts timestamptz, k text, x float8, i int, late bigint, a float8) USING lanes;
INSERT INTO l SELECT '2026-01-01'::timestamptz + i * interval '1 s', 'k' || i % 3, CASE WHEN i % 11 <> 0 THEN sin(i) * 100 END, i,
  CASE WHEN i = 4000 THEN 5 WHEN i % 50 <> 7 THEN i END, 0.5 FROM generate_series(0, 9999) i;
CREATE TABLE h USING heap AS TABLE l;
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 100) FROM l;
EXPLAIN (COSTS OFF) SELECT k, lanes.ema(x, 0.5 ORDER BY ts) FILTER (WHERE i > 5) FROM l GROUP BY k;
SET lanes.vectorize = require;
SELECT lanes.ema(x, 100) AS span, lanes.ema(x, 0.01) AS alpha, lanes.ema(x, 1) AS last, lanes.ema(i, 7) AS int4, lanes.ema(x * 2, 7) FILTER (WHERE i % 5 > 1) AS filtered FROM l;
SELECT lanes.ema(x, 100) AS span, lanes.ema(x, 0.01) AS alpha, lanes.ema(x, 1) AS last, lanes.ema(i, 7) AS int4, lanes.ema(x * 2, 7) FILTER (WHERE i % 5 > 1) AS filtered FROM h;
SELECT k, lanes.ema(x, 100 ORDER BY ts), lanes.ema(x, a ORDER BY i) AS varies, lanes.ema(x, 3 ORDER BY late) AS late FROM l GROUP BY k ORDER BY k;
SELECT k, lanes.ema(x, 100 ORDER BY ts), lanes.ema(x, a ORDER BY i) AS varies, lanes.ema(x, 3 ORDER BY late, i) AS late FROM h GROUP BY k ORDER BY k;
SELECT lanes.ema(x, 20 ORDER BY late) AS late, lanes.ema(i, 3 ORDER BY late) FILTER (WHERE late IS NULL OR late > 9900) AS nulls_last, count(*) FROM l;
SELECT lanes.ema(x, 20 ORDER BY late, i) AS late, lanes.ema(i, 3 ORDER BY late, i) FILTER (WHERE late IS NULL OR late > 9900) AS nulls_last, count(*) FROM h;
-- More rows than fit into work_mem.
SET work_mem = '64kB';
SELECT lanes.ema(x, 20 ORDER BY -i) AS down, lanes.ema(x, 20 ORDER BY (i % 100)::float8) AS floats FROM l;
SELECT lanes.ema(x, 20 ORDER BY -i) AS down, lanes.ema(x, 20 ORDER BY (i % 100)::float8, i) AS floats FROM h;
RESET work_mem;
-- No rows, and only rows with weight zero.
SELECT lanes.ema(x, 100), lanes.ema(x, 0.0) AS weight_of_nothing FROM l WHERE i < 0;
SELECT lanes.ema(x, 100 ORDER BY ts) FROM l WHERE i = 11;
-- first and last with an order by their own time.
SELECT lanes.first(i, ts ORDER BY ts), lanes.last(i, ts ORDER BY ts DESC) FROM l;
RESET lanes.vectorize;
-- EXPLAIN reports that late rows were sorted.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT lanes.ema(x, 20 ORDER BY late) FROM l;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT lanes.ema(x, 20 ORDER BY ts) FROM l;
-- Invalid weights raise the error of the row-by-row aggregate.
SELECT lanes.ema(x, 0.0) FROM l;
SELECT lanes.ema(x, 'NaN'::float8) FROM l;
SELECT lanes.ema(x, 0) FROM l WHERE i = 11;
SELECT lanes.ema(x, NULL::float8) FROM l;
SELECT lanes.ema(x, NULL::int) FROM l;
SELECT lanes.ema(x, i) FROM l WHERE i > 0;
SELECT lanes.ema(x, i / 3.0::float8) FROM l WHERE i > 0;
SELECT i % 3, lanes.ema(x, i % 3 + 1) FROM l GROUP BY 1 ORDER BY 1;
SELECT i % 3, lanes.ema(x, i % 3 + 1) FROM h GROUP BY 1 ORDER BY 1;
-- Orders that the engine has no aggregate for: PostgreSQL computes these from rows in order. Counts ignore theirs.
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3 ORDER BY ts DESC), lanes.first(i, ts ORDER BY i) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.first(i, ts ORDER BY i) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3 ORDER BY k) FROM l;
EXPLAIN (COSTS OFF) SELECT count(i ORDER BY i) FROM l;
DROP TABLE l, h;

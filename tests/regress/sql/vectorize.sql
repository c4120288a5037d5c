-- The vectorised nodes: plans, fallbacks with their reason, and privileges that no fast path
-- circumvents.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE trade (ts timestamptz, sym text, price float8, size int4, ok bool, note numeric);
INSERT INTO trade SELECT '2026-01-01'::timestamptz + i * interval '1 s', 'S' || i % 7, i % 100, i % 13, i % 3 = 0, i FROM generate_series(0, 9999) i;
INSERT INTO trade VALUES (NULL, NULL, NULL, NULL, NULL, NULL), ('2026-01-02', '', 'NaN', -1, NULL, 0);
ANALYZE trade;

-- Plans of the main shapes.
EXPLAIN (COSTS OFF) SELECT * FROM trade WHERE sym = 'S1' AND ts > '2026-01-01 02:00';
EXPLAIN (COSTS OFF) SELECT count(*), sum(size), min(price) FROM trade WHERE size BETWEEN 3 AND 5;
EXPLAIN (COSTS OFF) SELECT sym, avg(size), count(*) FILTER (WHERE ok) FROM trade GROUP BY sym HAVING count(*) > 10 ORDER BY sym;
EXPLAIN (COSTS OFF) SELECT date_trunc('hour', ts), max(price) FROM trade GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT sym, sum(note) FROM trade WHERE note > size GROUP BY sym;
EXPLAIN (COSTS OFF) SELECT array_agg(sym ORDER BY random()) FROM trade;
SET lanes.vectorize = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM trade WHERE size = 1;
RESET lanes.vectorize;

-- Zone maps skip vectors.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT size FROM trade WHERE ts >= '2026-01-01 02:46:30' AND ts < '2026-01-01 02:46:33';
SET lanes.zone_maps = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT size FROM trade WHERE ts >= '2026-01-01 02:46:30' AND ts < '2026-01-01 02:46:33';
RESET lanes.zone_maps;

-- require: queries that are vectorised, and the reasons for others. The first ones are the queries
-- of dashboards.
SET lanes.vectorize = require;
SELECT lanes.time_bucket('3600.000s', ts) AS time, avg(size) FROM trade WHERE ts BETWEEN '2026-01-01T00:00:00Z' AND '2026-01-01T23:59:59Z' GROUP BY 1 ORDER BY 1;
SELECT date_bin('1 hour', ts, 'epoch') AS time, sym, max(size) FROM trade WHERE ts < '2026-01-01 00:02' AND sym IN ('S1', 'S2') GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*), count(price), sum(size), min(price), max(price), bool_and(ok), bool_or(ok) FROM trade;
SELECT ok, count(*) FROM trade GROUP BY ok ORDER BY ok;
SELECT sym, size FROM trade WHERE sym LIKE 'S%' AND NOT ok AND size = 12 ORDER BY ts LIMIT 2;
SELECT sum(note) FROM trade;
SELECT array_agg(sym ORDER BY random()) FROM trade;
SELECT size FROM trade WHERE sign(size + price) = 3;
SELECT sym, sum(size) FROM trade GROUP BY ROLLUP (sym);
SELECT count(*) FROM trade WHERE random() < 2;
RESET lanes.vectorize;

-- Errors are PostgreSQL's own, and only for rows that count.
SELECT sum(size / (size - 3)) FROM trade;
SELECT sum(size / (size - 3)) FROM trade WHERE size <> 3;
SELECT count(*) FROM trade WHERE size + 2147483647 > 0;
SELECT max(price * 1e308) FROM trade WHERE price > 50;

CREATE TABLE extreme (i int); INSERT INTO extreme VALUES (-2147483648), (5);
SELECT lanes.time_bucket(17, i), count(*) FROM extreme WHERE i > -2147483648 GROUP BY 1;
SELECT lanes.time_bucket(17, i), count(*) FROM extreme GROUP BY 1;
DROP TABLE extreme;

-- Parameters, generic plans, and a table that changes under a plan.
SET plan_cache_mode = force_generic_plan;
PREPARE counted(text, int) AS SELECT count(*), sum(size) FROM trade WHERE sym = $1 AND size > $2;
EXECUTE counted('S1', 3);
EXECUTE counted('S2', NULL);
ALTER TABLE trade ALTER COLUMN size TYPE bigint;
EXECUTE counted('S1', 3);
ALTER TABLE trade DROP COLUMN ok, ADD COLUMN late int DEFAULT 5;
SELECT sum(late), count(late) FROM trade WHERE late = 5;
RESET plan_cache_mode;

-- Row-level security: a qual of the user never sees a row that the policy hides.
CREATE TABLE secret (owner text, v int);
INSERT INTO secret VALUES ('regress_lanes_vector', 1), ('regress_lanes_vector', 2), ('somebody', 0);
CREATE ROLE regress_lanes_vector;
GRANT SELECT ON secret TO regress_lanes_vector;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
CREATE FUNCTION leak(int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'seen %', $1; RETURN true; END $$;
SET ROLE regress_lanes_vector;
SELECT count(*), sum(v) FROM secret WHERE 10 / v > 0;
SELECT v FROM secret WHERE leak(v) AND 10 / v > 0 ORDER BY v;
RESET ROLE;
CREATE VIEW fenced WITH (security_barrier) AS SELECT v FROM secret WHERE owner = 'somebody' AND v <> 0;
SELECT count(*) FROM fenced WHERE 10 / v > 0;
SELECT * FROM fenced WHERE leak(v);
DROP VIEW fenced; DROP TABLE secret; DROP ROLE regress_lanes_vector; DROP FUNCTION leak(int);

-- A scrolling cursor works as on any table; a cursor that never scrolls is vectorised.
BEGIN;
DECLARE back CURSOR FOR SELECT size FROM trade WHERE ts < '2026-01-01 00:00:05';
FETCH 3 FROM back;
FETCH BACKWARD 1 FROM back;
EXPLAIN (COSTS OFF) DECLARE onward NO SCROLL CURSOR FOR SELECT size FROM trade;
DECLARE either SCROLL CURSOR FOR SELECT size FROM trade WHERE ts < '2026-01-01 00:00:05' ORDER BY ts;
FETCH ALL FROM either;
FETCH BACKWARD 2 FROM either;
COMMIT;

-- Rescans with other parameters: nested loops and lateral sub-selects.
CREATE TABLE picked (s text); INSERT INTO picked VALUES ('S1'), ('S3'), ('none');
SELECT s, n, total FROM picked, LATERAL (SELECT count(*) AS n, sum(size) AS total FROM trade WHERE sym = s) x ORDER BY s;
DROP TABLE picked;

-- Rows changed and deleted, in this transaction and before.
BEGIN;
DELETE FROM trade WHERE sym = 'S1'; UPDATE trade SET size = 1000 WHERE sym = 'S2';
SELECT sym, count(*), sum(size) FROM trade GROUP BY sym ORDER BY sym;
ROLLBACK;
SELECT count(*) FROM trade WHERE size = 1000;
DELETE FROM trade;
SELECT count(*), sum(size), max(ts) FROM trade;
SELECT sym, count(*) FROM trade GROUP BY sym;
DROP TABLE trade;

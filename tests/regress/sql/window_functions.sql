-- Vectorised lanes.ema, lanes.delta and lanes.rate over a window: in the order of time, peers, rows
-- out of order, NULLs.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (id int, ts timestamptz, n int, k text, j smallint, x float8, b bigint) USING lanes;
INSERT INTO l SELECT i, '2026-01-01'::timestamptz + i / 6 * interval '1 s', i / 6, 'k' || i % 4, i % 3, CASE WHEN i % 11 <> 0 THEN sin(i) * 100 END, i::bigint * 1000003
  FROM generate_series(0, 6999) i;
EXPLAIN (COSTS OFF) SELECT ts, k, lanes.ema(x, 10) OVER (PARTITION BY k ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF, VERBOSE) SELECT x - lanes.ema(x, 10) OVER w AS above, x > 5 AS high, lanes.delta(n) OVER w FROM l WHERE x > 5 WINDOW w AS (ORDER BY ts) ORDER BY ts LIMIT 3;
-- Another order is left to a Sort above the node.
EXPLAIN (COSTS OFF) SELECT k, ts, lanes.rate(x, ts) OVER (PARTITION BY k, j ORDER BY n) FROM l ORDER BY k, ts;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT lanes.ema(x, 10) OVER w, lanes.delta(b) OVER w FROM l WHERE j < 2 WINDOW w AS (PARTITION BY k ORDER BY ts);
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT lanes.ema(x, 10) OVER (PARTITION BY k ORDER BY x) FROM l;
SET lanes.vectorize = require;
SELECT x - lanes.ema(x, 10) OVER w AS above, x > 5 AS high, lanes.delta(n) OVER w FROM l WHERE x > 5 WINDOW w AS (ORDER BY ts) ORDER BY ts LIMIT 3;
SELECT id, ts, k, x, lanes.ema(x, 10) OVER w AS peers, lanes.delta(x) OVER w AS delta, lanes.rate(x, ts) OVER w AS rate FROM l WHERE k < 'k2' AND id < 15 WINDOW w AS (ORDER BY ts);
SELECT id, lanes.ema(x, span => 10) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS ema FROM l WHERE k < 'k2' AND id < 15;
-- The answers are compared with PostgreSQL's own node. Among equal times the order is that of rows,
-- so the comparison names that order explicitly. The average of peers is that of the last of them.
CREATE FUNCTION differing(keys text, ord text, frame text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE bad bigint;
  calls text := 'lanes.ema(x, 7) OVER w AS e, lanes.ema(x * 2, 0.3) OVER w AS f, lanes.delta(x) OVER w AS d, lanes.delta(b) OVER w AS db, lanes.delta(n) OVER w AS dn, lanes.rate(x, ts) OVER w AS r';
  partitions text := CASE WHEN keys <> '' THEN 'PARTITION BY ' || keys ELSE '' END;
BEGIN
  SET lanes.vectorize = require;
  EXECUTE format('CREATE TEMP TABLE found USING heap AS SELECT id, k, x, %s FROM l WHERE j <> 2 OR x > 50 WINDOW w AS (%s ORDER BY %s %s)', calls, partitions, ord, frame);
  SET lanes.vectorize = off;
  EXECUTE format('CREATE TEMP TABLE wanted USING heap AS SELECT *, ctid AS place, %s FROM l WHERE j <> 2 OR x > 50 WINDOW w AS (%s ORDER BY %s, ctid)', calls, partitions, ord);
  IF frame = '' THEN
    EXECUTE format('UPDATE wanted SET e = p.e, f = p.f FROM (SELECT id, first_value(e) OVER p AS e, first_value(f) OVER p AS f FROM wanted WINDOW p AS (PARTITION BY %s ORDER BY place DESC)) p WHERE p.id = wanted.id',
      concat_ws(', ', nullif(keys, ''), ord));
  END IF;
  SELECT count(*) INTO bad FROM (
    (SELECT * FROM found EXCEPT ALL SELECT id, k, x, e, f, d, db, dn, r FROM wanted) UNION ALL
    (SELECT id, k, x, e, f, d, db, dn, r FROM wanted EXCEPT ALL SELECT * FROM found)) s;
  DROP TABLE found, wanted;
  RETURN bad;
END $$;
CREATE FUNCTION all_differing() RETURNS TABLE (keys text, ord text, frame text, rows bigint) LANGUAGE sql AS $$
  SELECT keys, ord, frame, differing(keys, ord, frame) FROM unnest(array['', 'k', 'k, j']) keys, unnest(array['ts', 'n', 'x']) ord, unnest(array['', 'ROWS UNBOUNDED PRECEDING']) frame
$$;
SELECT * FROM all_differing() WHERE rows <> 0;
SELECT differing('b', 'ts', '') AS partitions_of_one;
-- Deleted and late rows, rows of several segments, long stretches of peers, NaN, infinities and
-- NULL in every column.
DELETE FROM l WHERE id % 13 = 0;
SELECT setseed(0.25);
INSERT INTO l SELECT 10000 + i, '2026-01-01'::timestamptz + (4000 + i / 3000) * interval '1 s', 4000 + i / 3000, CASE WHEN random() > 0.1 THEN 'k' || (random() * 30)::int END,
  CASE WHEN random() > 0.1 THEN random() * 3 END, CASE WHEN random() < 0.1 THEN NULL WHEN random() < 0.001 THEN 'NaN' WHEN random() < 0.001 THEN '-infinity' ELSE random() * 100 END, random() * 1e9
  FROM generate_series(1, 8000) i;
INSERT INTO l SELECT 30000 + i, NULL, NULL, 'k' || i % 5, 1, i, i FROM generate_series(1, 2500) i;
SELECT * FROM all_differing() WHERE rows <> 0;
INSERT INTO l SELECT 40000 + i, CASE WHEN random() < 0.1 THEN 'infinity' WHEN random() < 0.1 THEN '-infinity' ELSE '2026-01-01'::timestamptz + random() * interval '1 h' END, random() * 4000, 'k' || i % 7, 1, random() * 9, i
  FROM generate_series(1, 1000) i;
UPDATE l SET x = x + 1 WHERE id % 100 = 1;
SELECT * FROM all_differing() WHERE rows <> 0;
SET work_mem = '64kB';
SELECT rows FROM (SELECT differing('k', ord, '') AS rows FROM unnest(array['ts', 'n']) ord) s WHERE rows <> 0;
RESET work_mem;
-- No row passes; LIMIT; a cursor; a rescan with other parameters; a subtransaction that fails.
SET lanes.vectorize = require;
SELECT lanes.ema(x, 0.0) OVER (ORDER BY ts) FROM l WHERE id < 0;
SELECT id, lanes.delta(n) OVER (ORDER BY n) FROM l WHERE id < 7000 LIMIT 2;
BEGIN;
DECLARE c CURSOR FOR SELECT id, lanes.ema(n, 3) OVER (ORDER BY ts) FROM l WHERE id < 20;
FETCH 2 FROM c;
SAVEPOINT s;
INSERT INTO l VALUES (-1, '2000-01-01', -5, 'k1', 1, 1, 1);
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
MOVE ALL FROM c;
FETCH 1 FROM c;
COMMIT;
RESET lanes.vectorize;
SELECT v, (SELECT sum(d) FROM (SELECT lanes.delta(n * v) OVER (ORDER BY n) AS d FROM l WHERE id BETWEEN v AND 20) s) FROM (VALUES (1), (7), (NULL)) o (v);
PREPARE p (int, float8) AS SELECT count(e), max(e) FROM (SELECT lanes.ema(x, $2) OVER (PARTITION BY k ORDER BY ts) AS e FROM l WHERE id > $1 AND id < 7000) s;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (20, 0.5);
EXECUTE p (2000, 1);
EXECUTE p (2000, 2);
RESET plan_cache_mode;
-- Values out of range, and invalid weights.
CREATE TABLE e (i int, n int, b bigint, x float8) USING lanes;
INSERT INTO e VALUES (1, 2147483647, 9223372036854775807, 1e308), (2, -2, -2, -1e308);
SELECT lanes.delta(n) OVER (ORDER BY i) FROM e LIMIT 1;
SELECT lanes.delta(n) OVER (ORDER BY i) FROM e;
SELECT lanes.delta(n) OVER (ORDER BY x) FROM e;
SELECT lanes.delta(b) OVER (ORDER BY i) FROM e;
SELECT lanes.delta(x) OVER (ORDER BY i) FROM e;
SELECT lanes.ema(x, 0) OVER (ORDER BY i) FROM e;
SELECT lanes.ema(x, 1.5) OVER (ORDER BY i) FROM e;
SELECT lanes.ema(x, NULL::int) OVER (ORDER BY i) FROM e;
-- Queries that are left to PostgreSQL, with the reason.
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3) OVER (PARTITION BY k) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3) OVER (ORDER BY ts DESC) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.delta(x) OVER (ORDER BY k) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.delta(x) OVER (ORDER BY ts), lanes.delta(x) OVER (ORDER BY n) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.delta(x) OVER w, row_number() OVER w FROM l WINDOW w AS (ORDER BY ts);
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3) OVER (ORDER BY ts ROWS 5 PRECEDING) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, n) OVER (ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.ema(x, 3) FILTER (WHERE n > 3) OVER (ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF) SELECT ctid, lanes.delta(x) OVER (ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.delta(x) OVER (PARTITION BY k COLLATE "C", md5(k) ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF) SELECT lanes.delta(x) OVER (ORDER BY ts) FROM l WHERE md5(k || x) > 'a';
SET lanes.vectorize = require;
SELECT lanes.ema(x, 3) OVER (ORDER BY ts DESC) FROM l;
-- Without a function of the extension no reason is reported.
SELECT id, row_number() OVER (ORDER BY id) FROM l LIMIT 1;
RESET lanes.vectorize;
-- A function is not computed for a role without the privilege to execute it.
REVOKE EXECUTE ON FUNCTION lanes.delta(float8) FROM PUBLIC;
CREATE ROLE regress_lanes_window;
GRANT SELECT ON l TO regress_lanes_window;
SET ROLE regress_lanes_window;
SELECT lanes.delta(x) OVER (ORDER BY ts) FROM l LIMIT 1;
SELECT lanes.delta(n) OVER (ORDER BY ts) FROM l LIMIT 1;
RESET ROLE;
GRANT EXECUTE ON FUNCTION lanes.delta(float8) TO PUBLIC;
DROP TABLE l, e;
DROP ROLE regress_lanes_window;
DROP FUNCTION differing, all_differing;

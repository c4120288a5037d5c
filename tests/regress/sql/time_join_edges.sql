-- Joins by time: late rows, side effects, errors and privileges.
CREATE SCHEMA time_join_edges;
SET search_path = time_join_edges, public;
SET default_table_access_method = lanes;
CREATE TABLE l (ts timestamptz, k int);
CREATE TABLE r (ts timestamptz, k int, v int);
INSERT INTO l SELECT '2026-01-01'::timestamptz + i * interval '1 s', 1 FROM generate_series(1, 10) i;
INSERT INTO r SELECT '2026-01-01'::timestamptz + i * interval '1 s', 1, i FROM generate_series(0, 5000, 5) i;
INSERT INTO r SELECT '2026-01-01'::timestamptz + i * interval '1 s', 1, i FROM generate_series(5001, 9000) i;
ANALYZE l;
ANALYZE r;
CREATE VIEW latest AS
  SELECT sum(q.v), count(*) FROM l JOIN LATERAL (SELECT v FROM r WHERE r.k = l.k AND r.ts <= l.ts ORDER BY r.ts DESC LIMIT 1) q ON true;
CREATE VIEW within AS
  SELECT sum(q.c) AS c, sum(q.s) AS s
  FROM l JOIN LATERAL (SELECT count(*) c, sum(v) s FROM r WHERE r.k = l.k AND r.ts <= l.ts AND r.ts > l.ts - interval '3 s') q ON true;
SELECT * FROM latest;
SELECT * FROM within;
-- A row that is late, long after the vectors that the left side has passed.
INSERT INTO r VALUES ('2026-01-01 00:00:07', 1, 777);
EXPLAIN (COSTS OFF) SELECT * FROM latest;
EXPLAIN (COSTS OFF) SELECT * FROM within;
SELECT * FROM latest;
SELECT * FROM within;
SET lanes.vectorize = off;
SET lanes.enable_asof = off;
SELECT * FROM latest;
SELECT * FROM within;
RESET lanes.vectorize;
RESET lanes.enable_asof;
-- A row that an UPDATE moves to the end is late as well.
UPDATE r SET v = v + 1000 WHERE v = 5;
SELECT * FROM latest;
SELECT * FROM within;

-- An error that no row of any time window raises.
SELECT max(q.s) FROM l JOIN LATERAL (SELECT sum(v * 1000000) s FROM r WHERE r.k = l.k AND r.ts <= l.ts) q ON true;

-- An unused column is evaluated if it has side effects.
CREATE SEQUENCE effects;
SELECT count(q.v) FROM l JOIN LATERAL (SELECT v, nextval('effects') FROM r WHERE r.k = l.k AND r.ts <= l.ts ORDER BY r.ts DESC LIMIT 1) q ON true;
SELECT last_value FROM effects;

-- Without right rows no key is evaluated.
CREATE TABLE nothing (ts timestamptz, k int, v int);
SELECT count(q.v), count(*) FROM l LEFT JOIN LATERAL (SELECT v FROM nothing r WHERE r.k = 10 / (l.k - 1) AND r.ts <= l.ts ORDER BY r.ts DESC LIMIT 1) q ON true;
SELECT sum(q.n), count(*) FROM l LEFT JOIN LATERAL (SELECT count(*) n FROM nothing r WHERE r.k = 10 / (l.k - 1) AND r.ts <= l.ts AND r.ts > l.ts - interval '1 s') q ON true;

-- The engine does not execute a function for a role without the privilege.
CREATE ROLE regress_lanes_edges;
GRANT USAGE ON SCHEMA time_join_edges TO regress_lanes_edges;
GRANT SELECT ON ALL TABLES IN SCHEMA time_join_edges TO regress_lanes_edges;
BEGIN;
REVOKE EXECUTE ON FUNCTION sum(int4), int4gt(int4, int4), date_trunc(text, timestamptz) FROM public;
SET LOCAL ROLE regress_lanes_edges;
SAVEPOINT before;
SELECT sum(v) FROM r;
ROLLBACK TO before;
SELECT count(*) FROM r WHERE v > 3;
ROLLBACK TO before;
SELECT date_trunc('hour', ts), count(*) FROM r GROUP BY 1;
ROLLBACK TO before;
SELECT * FROM l, LATERAL (SELECT sum(v) s FROM r WHERE r.k = l.k AND r.ts <= l.ts AND r.ts > l.ts - interval '3 s') q;
ROLLBACK TO before;
SELECT DISTINCT ON (k) * FROM r WHERE v > 3 ORDER BY k, ts DESC;
ROLLBACK TO before;
SELECT count(*) FROM r;
ROLLBACK;
RESET search_path;
DROP SCHEMA time_join_edges CASCADE;
DROP ROLE regress_lanes_edges;

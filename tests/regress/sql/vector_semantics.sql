-- The vectorised executor: queries that it accepts, queries that it refuses with a reason, and rows
-- that it must not reveal.
SET default_table_access_method = lanes; -- Heap tables are marked USING heap.
CREATE TABLE m (ts timestamptz, host text, v float8, n int, big bigint, small smallint, ok bool, price numeric, d date);
INSERT INTO m SELECT timestamptz '2026-03-01 00:00Z' + i * interval '10 s', 'h' || i % 5, i / 4.0, i % 100,
  i::bigint * 1000, (i % 7)::smallint, i % 3 = 0, i / 10.0, date '2026-03-01' + i / 5000
  FROM generate_series(0, 19999) i;
ANALYZE m;
SET timezone = 'UTC';
SET lanes.vectorize = require;

-- Plans.
EXPLAIN (COSTS OFF) SELECT * FROM m WHERE n = 5 AND host = 'h1';
EXPLAIN (COSTS OFF) SELECT host, avg(v), max(n) FROM m GROUP BY host;
EXPLAIN (COSTS OFF) SELECT count(*), sum(v * 2), min(ts) FILTER (WHERE ok) FROM m WHERE n BETWEEN 3 AND 9 OR host IN ('h1', 'h2');
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) SELECT date_trunc('hour', ts), host, count(*) FROM m GROUP BY 1, 2 HAVING count(*) > 5 ORDER BY 1, 2;
RESET enable_incremental_sort;
EXPLAIN (COSTS OFF) SELECT x.host FROM m x JOIN m y ON x.n = y.n AND y.v < 10 WHERE x.host LIKE 'h1%';
EXPLAIN (COSTS OFF) SELECT lanes.last(v, ts), lanes.first(n, ts), lanes.vwap(v, n) FROM m;
EXPLAIN (COSTS OFF) SELECT * FROM m ORDER BY ts DESC LIMIT 3;

-- The queries of dashboards.
EXPLAIN (COSTS OFF) SELECT lanes.time_bucket('60.000s', ts) AS "time", avg(v) FROM m
  WHERE ts BETWEEN '2026-03-01T01:00:00Z' AND '2026-03-01T02:00:00Z' GROUP BY 1 ORDER BY 1;
SELECT lanes.time_bucket('600.000s', ts) AS "time", host AS metric, avg(v), count(*) FROM m
  WHERE ts BETWEEN '2026-03-01T01:00:00Z' AND '2026-03-01T01:19:59.999Z' AND host IN ('h1', 'h3') GROUP BY 1, 2 ORDER BY 1, 2;
SELECT date_trunc('day', ts), sum(n), max(v) FROM m WHERE ts >= '2026-03-01T00:00:00Z' AND ts < '2026-03-04T00:00:00Z' GROUP BY 1 ORDER BY 1;
SELECT date_bin('12 h', ts, '2000-01-01Z'), count(*) FROM m WHERE ts < '2026-03-02T00:00:00Z' GROUP BY 1 ORDER BY 1;
SELECT DISTINCT host FROM m ORDER BY 1;
SELECT DISTINCT ON (host) host, ts, v FROM m ORDER BY host, ts DESC;

-- Zone maps exclude vectors.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM m WHERE ts >= '2026-03-03T07:30:00Z' AND n = 1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM m WHERE big < 0;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM m WHERE small > 7 OR small > 8;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM m WHERE 7 < small;

-- Refused queries, with the reason.
SELECT count(*) FROM m WHERE price > n;
SELECT count(*) FROM m WHERE length(host) > n;
SELECT count(*) FROM m WHERE random() < 2;
SELECT sum(price) FROM m;
SELECT array_agg(host ORDER BY random()) FROM m;
SELECT string_agg(host, ',' ORDER BY random()) FROM m;
SELECT host, ok, count(*) FROM m GROUP BY GROUPING SETS ((host), (ok));
SELECT count(*) FROM (SELECT price, count(*) FROM m GROUP BY price) prices;
SELECT xmin FROM m;
SELECT count(*) FROM m TABLESAMPLE SYSTEM (10);
SELECT count(*) FROM m WHERE CASE WHEN n = 0 THEN ok ELSE 1 / n = 1 END;
SELECT count(*) FROM m WHERE d < ts;
SELECT count(*) FROM m WHERE n < 50;
SET lanes.vectorize = on;
EXPLAIN (COSTS OFF) SELECT host FROM m WHERE price > n AND n = 3;

-- Errors are those of the row-by-row executor, and only for rows that count.
SELECT count(*) FROM m WHERE n <> 0 AND 100 / n > 10;
SELECT count(*) FROM m WHERE n = 0 OR 100 / n > 10;
SELECT count(*) FROM m WHERE 100 / n > 10;
SELECT sum(100 / n) FILTER (WHERE n > 0) FROM m;
SELECT sum(small * 10000::smallint) FROM m;
SELECT max(big::int4) FROM m WHERE big < 2000000;
SELECT max((big * 1000)::int4) FROM m;
SELECT max(exp(1) * (v * 1e308)) FROM m;

-- Empty lists, also compared with NULL.
CREATE TABLE e (t text, i int);
INSERT INTO e VALUES ('a', 1), (NULL, NULL);
SELECT count(*) FILTER (WHERE t = ANY ('{}')), count(*) FILTER (WHERE t <> ALL ('{}')), count(*) FILTER (WHERE i = ANY ('{}')),
  count(*) FILTER (WHERE i <> ALL ('{}')), count(*) FILTER (WHERE (t = ANY ('{}')) IS NULL) FROM e;
SELECT count(*) FROM e WHERE t NOT IN ('b', NULL);
SELECT count(*) FROM e WHERE NOT t LIKE 'b\';
INSERT INTO e VALUES ('abc', 2);
SELECT count(*) FROM e WHERE i < 2 AND t LIKE 'a\';
SELECT count(*) FROM e WHERE t LIKE 'a\';
SELECT count(*) FROM e WHERE 'abc' LIKE t || '';
SELECT count(*) FROM e WHERE 'abc' LIKE t;
SELECT count(*) FROM e WHERE t LIKE 'a\';
DELETE FROM e WHERE t LIKE 'a%';
SELECT count(*) FROM e WHERE t LIKE 'a\';
SELECT count(*) FROM e WHERE i IS NOT NULL AND t LIKE 'a\';
DROP TABLE e;

-- Equality that is not that of bytes.
CREATE TABLE c (plain text);
INSERT INTO c VALUES ('a'), ('A'), ('b '), ('b');
SELECT count(*) FROM c GROUP BY plain::bpchar ORDER BY 1;
DROP TABLE c;

-- Hidden rows stay hidden: a leaky function runs after the condition that hides them.
CREATE ROLE regress_lanes_viewer;
CREATE TABLE secret (id int, owner text, v int);
INSERT INTO secret SELECT i, CASE WHEN i % 2 = 0 THEN 'regress_lanes_viewer' ELSE 'other' END, i FROM generate_series(1, 6) i;
CREATE FUNCTION leak(i int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''saw %'', i; RETURN true; END';
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM secret WHERE owner = 'regress_lanes_viewer';
CREATE VIEW slow_barrier WITH (security_barrier) AS SELECT * FROM secret WHERE length(lower(owner)) + 0 * v > 10;
SELECT count(*) FROM barrier WHERE leak(v);
SELECT count(*) FROM slow_barrier WHERE leak(v) AND v > 2;
SELECT count(*) FROM slow_barrier WHERE 60 / (v - 3) > 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM slow_barrier WHERE 60 / (v - 3) > 0 AND v < 5;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user::text);
GRANT SELECT, UPDATE ON secret TO regress_lanes_viewer;
SET ROLE regress_lanes_viewer;
SELECT count(*), sum(v), max(id) FROM secret;
SELECT owner, count(*) FROM secret GROUP BY owner;
SELECT id FROM secret WHERE leak(v) ORDER BY id;
SELECT count(*) FROM secret WHERE 60 / (v - 3) <> 0;
UPDATE secret SET v = v + 1 WHERE v > 2 RETURNING id, v;
RESET ROLE;
SET lanes.vectorize = require;
SET ROLE regress_lanes_viewer;
SELECT count(*), sum(v) FROM secret WHERE v < 6;
RESET ROLE;
SET lanes.vectorize = on;
DROP TABLE secret CASCADE;
DROP FUNCTION leak;
DROP ROLE regress_lanes_viewer;

-- Cursors.
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT n, host FROM m WHERE n < 3 AND v < 100;
FETCH 4 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH LAST FROM s;
DECLARE h CURSOR WITH HOLD FOR SELECT host, count(*) FROM m GROUP BY host ORDER BY host;
FETCH 1 FROM h;
DECLARE u CURSOR FOR SELECT * FROM m WHERE n = 7 AND host = 'h2' FOR UPDATE;
FETCH 1 FROM u;
UPDATE m SET v = -1 WHERE CURRENT OF u;
SELECT count(*) FROM m WHERE v = -1;
FETCH 1 FROM u;
DELETE FROM m WHERE CURRENT OF u;
SELECT count(*) FROM m WHERE n = 7;
COMMIT;
FETCH 2 FROM h;
CLOSE h;

-- Writes through a scan.
BEGIN;
UPDATE m SET n = n + 1000 WHERE n = 98 AND host = 'h3' AND ts < '2026-03-01 03:00Z' RETURNING n, host, v;
SELECT count(*), min(n), max(n) FROM m WHERE n > 1000;
DELETE FROM m WHERE host = 'h3' AND n > 1000;
SELECT count(*) FROM m WHERE n > 1000;
SELECT n, v FROM m WHERE n = 99 AND v < 100 FOR UPDATE;
ROLLBACK;
SELECT count(*) FROM m WHERE n > 1000;

-- Prepared statements across changes of the table.
SET plan_cache_mode = force_generic_plan;
PREPARE by_host(text, int) AS SELECT count(*), sum(n) FROM m WHERE host = $1 AND n < $2;
CREATE TABLE p (k int, t text, v int);
INSERT INTO p SELECT i, 't' || i, i * 2 FROM generate_series(1, 5) i;
PREPARE all_of(int) AS SELECT * FROM p WHERE k = $1;
PREPARE sums(int) AS SELECT count(*), sum(v) FROM p WHERE v > $1;
PREPARE listed(int[]) AS SELECT k FROM p WHERE k = ANY ($1) ORDER BY k;
EXECUTE by_host('h1', 10);
EXECUTE by_host(NULL, 10);
EXECUTE by_host('none', 10);
EXECUTE all_of(2);
EXECUTE sums(4);
EXECUTE listed('{1,3,NULL}');
EXECUTE listed(NULL);
EXECUTE listed('{}');
EXPLAIN (COSTS OFF) EXECUTE sums(4);
ALTER TABLE p ADD COLUMN later int DEFAULT 7;
EXECUTE sums(4);
EXECUTE all_of(2);
SELECT later, count(*) FROM p GROUP BY later;
INSERT INTO p VALUES (6, NULL, 12, NULL);
SELECT later, count(*) FROM p WHERE later IS NULL OR later = 7 GROUP BY later ORDER BY 1;
ALTER TABLE p DROP COLUMN t;
EXECUTE sums(4);
SELECT * FROM p WHERE v > 8;
SELECT p FROM p WHERE v > 8;
ALTER TABLE p ALTER COLUMN v TYPE bigint;
EXECUTE sums(4);
ALTER TABLE p ALTER COLUMN v TYPE text;
EXECUTE sums(4);
RESET plan_cache_mode;
DEALLOCATE ALL;
DROP TABLE p;

-- Partitions, child tables, and tables of other access methods.
CREATE TABLE parted (k int, v int, t text) PARTITION BY RANGE (k);
CREATE TABLE parted_a PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_b (t text, gone int, v int, k int) USING lanes;
ALTER TABLE parted_b DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_b FOR VALUES FROM (10) TO (20);
CREATE TABLE parted_c PARTITION OF parted FOR VALUES FROM (20) TO (30) USING heap;
INSERT INTO parted SELECT i, i * 2, 't' || i % 2 FROM generate_series(0, 29) i;
EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE v > 10 AND t = 't1';
SELECT t, count(*), sum(v) FROM parted WHERE k > 3 GROUP BY t ORDER BY t;
SELECT tableoid::regclass, ctid, k FROM parted WHERE k IN (1, 11, 21) ORDER BY k;
SELECT xmin IS NOT NULL AS has_xmin, count(*) FROM parted GROUP BY 1;
SELECT parted FROM parted WHERE v = 24;
UPDATE parted SET k = 12, v = -1 WHERE k = 2 RETURNING tableoid::regclass, *;
SELECT count(*) FROM parted_b WHERE v = -1;
DROP TABLE parted;
CREATE TABLE parent (k int, v int);
CREATE TABLE child (extra text) INHERITS (parent);
INSERT INTO parent VALUES (1, 10), (2, 20);
INSERT INTO child VALUES (3, 30, 'x');
SELECT count(*), sum(v) FROM parent WHERE k > 1;
SELECT count(*), sum(v) FROM ONLY parent WHERE k > 1;
SELECT xmax = 0 AS kept, k FROM parent WHERE v > 10 ORDER BY k;
DROP TABLE parent CASCADE;
CREATE TEMP TABLE tmp (k int, t text);
CREATE UNLOGGED TABLE unlogged (k int, t text);
SET lanes.vectorize = require;
SELECT count(*), sum(k), min(k) FROM tmp;
SELECT t, count(*) FROM tmp GROUP BY t;
INSERT INTO tmp SELECT i, 't' || i % 2 FROM generate_series(1, 5000) i;
INSERT INTO unlogged SELECT * FROM tmp;
SELECT t, count(*), sum(k) FROM tmp WHERE k % 3 = 0 GROUP BY t ORDER BY t;
SELECT t, count(*), sum(k) FROM unlogged WHERE k % 3 = 0 GROUP BY t ORDER BY t;
DELETE FROM tmp;
SELECT count(*), sum(k), bool_and(k > 0), avg(k) FROM tmp;
SELECT t, count(*) FROM tmp GROUP BY t HAVING count(*) >= 0;
SELECT count(*) FROM tmp HAVING count(*) > 0;
RESET lanes.vectorize;
DROP TABLE tmp, unlogged, m;
RESET timezone;
-- An expression that is too deep is an error, wherever it is detected first.
CREATE TABLE deep (i int8, k int) USING lanes;
INSERT INTO deep VALUES (1, 1);
SET max_stack_depth = '300kB';
DO $$
DECLARE depth int; shape text; outcomes text[];
BEGIN
    FOR depth IN 100 .. 1000 BY 20 LOOP
        FOREACH shape IN ARRAY ARRAY['sum(i)%s', 'sum(i%s)', 'k%s, sum(i)'] LOOP
            BEGIN
                EXECUTE format('SELECT ' || shape || ' FROM deep WHERE i > 0 GROUP BY k', repeat('*1', depth));
                outcomes := outcomes || 'ok'::text;
            EXCEPTION WHEN statement_too_complex THEN outcomes := outcomes || 'too deep'::text;
            END;
        END LOOP;
    END LOOP;
    RAISE NOTICE '%', (SELECT array_agg(DISTINCT o ORDER BY o) FROM unnest(outcomes) o);
END $$;
RESET max_stack_depth;
DROP TABLE deep;

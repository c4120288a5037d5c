-- Sub-selects of the select list that find a row by time, or aggregate a span of time, are executed as joins by time.
CREATE TABLE t (ts timestamptz, k int, v float8, s text) USING lanes;
CREATE TABLE q (ts timestamptz, k int, b float8, w text) USING lanes;
INSERT INTO t SELECT '2026-01-01'::timestamptz + i * interval '1 s', i % 7, i, 's' || i % 3 FROM generate_series(1, 2000) i;
INSERT INTO t VALUES ('2025-01-01', 1, 0, 'early'), ('2026-01-01 00:10', NULL, 1, 'no key'), (NULL, 1, 2, 'no time');
INSERT INTO q SELECT '2026-01-01'::timestamptz + i * interval '5 s', i % 6, i, 'w' || i FROM generate_series(1, 500) i;
INSERT INTO q VALUES ('2026-01-01 00:20', 2, NULL, NULL);
ANALYZE t; ANALYZE q;
CREATE FUNCTION twice(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE here text; there text;
BEGIN
    EXECUTE 'SELECT md5(string_agg(x::text, '' '' ORDER BY x::text)) FROM (' || query || ') x' INTO here;
    SET LOCAL lanes.enable_asof = off;
    EXECUTE 'SELECT md5(string_agg(x::text, '' '' ORDER BY x::text)) FROM (' || query || ') x' INTO there;
    RESET lanes.enable_asof;
    RETURN CASE WHEN here = there THEN 'same' ELSE 'differs' END;
END $$;
CREATE VIEW latest AS SELECT t.*, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t;
-- Plans.
EXPLAIN (COSTS OFF) SELECT t.ts, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t;
EXPLAIN (COSTS OFF) SELECT s, avg(v - (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) FROM t GROUP BY s;
EXPLAIN (COSTS OFF) SELECT s, max(b) FROM latest GROUP BY s LIMIT 5;
EXPLAIN (COSTS OFF) SELECT t.k, (SELECT max(q.b) FROM q WHERE q.k = t.k AND q.ts BETWEEN t.ts - interval '1 min' AND t.ts) FROM t;
EXPLAIN (COSTS OFF) WITH m AS (SELECT k, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts >= t.ts ORDER BY q.ts LIMIT 1) AS b FROM t) SELECT k, sum(b) FROM m GROUP BY k;
-- Two at once, within operators and functions.
EXPLAIN (COSTS OFF) SELECT abs((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) - (SELECT q.b FROM q WHERE q.k = t.k AND q.ts > t.ts ORDER BY q.ts LIMIT 1)) FROM t;
-- They stay where not every row's value may be needed.
EXPLAIN (COSTS OFF) SELECT (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t LIMIT 3;
EXPLAIN (COSTS OFF) SELECT CASE WHEN v < 5 THEN (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) END FROM t;
EXPLAIN (COSTS OFF) SELECT sum((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) FILTER (WHERE v < 5) FROM t;
EXPLAIN (COSTS OFF) SELECT count(*) FROM latest;
EXPLAIN (COSTS OFF) SELECT * FROM latest ORDER BY ts LIMIT 3;
EXPLAIN (COSTS OFF) SELECT (SELECT q.b + random() FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t;
EXPLAIN (COSTS OFF) SELECT max(b) FILTER (WHERE v < 5), max(CASE WHEN v < 5 THEN b END) FROM latest;
EXPLAIN (COSTS OFF) SELECT v, row_number() OVER (ORDER BY ts), (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t;
EXPLAIN (COSTS OFF) SELECT latest.b FROM latest JOIN q ON q.b = latest.v;
EXPLAIN (COSTS OFF) SELECT (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t WHERE random() < 0.5;
BEGIN;
DECLARE c CURSOR FOR SELECT v, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t WHERE v = 20;
FETCH 1 FROM c;
UPDATE t SET s = 's2' WHERE CURRENT OF c;
ROLLBACK;
-- Equal ones are joined once.
EXPLAIN (COSTS OFF) SELECT s, max((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) FROM t GROUP BY s HAVING max((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) > 3;
-- A sub-select that may return two rows is an error as ever.
SELECT (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC) FROM t;
SELECT (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 2) FROM t;
-- Answers are those of PostgreSQL's own plans.
SELECT twice('SELECT * FROM latest');
SELECT twice('SELECT s, count(b), sum(b), avg(v - b) FROM latest GROUP BY s');
SELECT twice('SELECT DISTINCT b FROM latest WHERE v > 100');
SELECT twice('SELECT t.ts, (SELECT q.w FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) AS w FROM t');
SELECT twice('SELECT t.ts, (SELECT count(*) FROM q WHERE q.k = t.k AND q.ts BETWEEN t.ts - interval ''1 min'' AND t.ts) AS n FROM t');
SELECT twice('SELECT t.ts, (SELECT avg(q.b) FROM q WHERE q.k = t.k AND q.ts BETWEEN t.ts - interval ''1 min'' AND t.ts) AS a FROM t');
SELECT twice('SELECT l.s, o.v, (SELECT q.b FROM q WHERE q.k = o.k AND q.ts <= l.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t l LEFT JOIN t o ON o.v = l.v + 1900');
SELECT twice('SELECT l.s, (SELECT q.b FROM q WHERE q.k = o.k AND q.ts <= l.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t l, t o WHERE o.v = l.v + 1900');
SELECT twice('SELECT ts, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t UNION ALL SELECT ts, b FROM q');
SELECT twice('SELECT ts, v - lag(v) OVER (ORDER BY ts) AS d, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM t');
SELECT twice('SELECT k, (SELECT q.b FROM q WHERE q.k = x.k AND q.ts <= x.ts ORDER BY q.ts DESC LIMIT 1) AS b FROM (SELECT k, max(ts) AS ts FROM t GROUP BY k) x');
SELECT twice('SELECT k, count(*), (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= ''2026-01-01 00:10'' ORDER BY q.ts DESC LIMIT 1) AS b FROM t GROUP BY k');
SELECT twice('SELECT GROUPING(s, k), s, k, sum((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) FROM t GROUP BY CUBE (s, k)');
SELECT twice('SELECT v, b, (SELECT q.b FROM q WHERE q.k = y.k AND q.ts <= y.ts ORDER BY q.ts DESC LIMIT 1) AS c FROM latest y WHERE b > 3 ORDER BY (SELECT q.b FROM q WHERE q.k = y.k AND q.ts > y.ts ORDER BY q.ts LIMIT 1)');
SELECT twice('SELECT x.ts, (SELECT (SELECT q.b FROM q WHERE q.k = x.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t WHERE t.v = x.v) AS b FROM t x WHERE x.v BETWEEN 10 AND 50');
-- Parameters, row-level security, and privileges of columns.
PREPARE later(interval) AS SELECT sum((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts + $1 ORDER BY q.ts DESC LIMIT 1)) FROM t;
SET plan_cache_mode = force_generic_plan;
EXECUTE later('1 min');
SET lanes.enable_asof = off;
EXECUTE later('1 min');
RESET lanes.enable_asof; RESET plan_cache_mode; DEALLOCATE later;
CREATE ROLE select_list_reader;
GRANT SELECT ON t TO select_list_reader; GRANT SELECT (ts, k) ON q TO select_list_reader;
SET ROLE select_list_reader;
SELECT t.ts, (SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1) FROM t;
RESET ROLE;
GRANT SELECT ON q TO select_list_reader;
ALTER TABLE q ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON q USING (k % 2 = 0);
SET ROLE select_list_reader;
SELECT k % 2 AS odd, count(*), count((SELECT q.b FROM q WHERE q.k = t.k AND q.ts <= t.ts ORDER BY q.ts DESC LIMIT 1)) FROM t GROUP BY 1 ORDER BY 1;
RESET ROLE;
DROP VIEW latest; DROP FUNCTION twice; DROP TABLE t, q; DROP ROLE select_list_reader;

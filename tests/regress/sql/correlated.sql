-- Aggregates that depend on the row around them become joins with groups, where that costs less. The
-- answers are compared with heap.
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA correlated; SET search_path = correlated;
CREATE TABLE heap_t (id int, k int, big int8, s text, v float8, n numeric) USING heap;
INSERT INTO heap_t SELECT i, i % 300, i % 300, 'S' || i % 7, i % 50, i % 40 FROM generate_series(1, 2000) i;
INSERT INTO heap_t VALUES (0, NULL, NULL, NULL, NULL, NULL), (-1, 1000, 1000, 'none', 1, 1);
CREATE TABLE heap_q (k int, big int8, s text, v float8, n numeric, d date) USING heap;
INSERT INTO heap_q SELECT i % 290, i % 290, 'S' || i % 6, i % 97, i % 89, date '2026-01-01' + i % 30 FROM generate_series(1, 20000) i;
INSERT INTO heap_q VALUES (NULL, NULL, NULL, 5, 5, NULL), (3, 3, 'S1', 'NaN', 'NaN', NULL), (4, 4, 'S2', NULL, NULL, NULL), (295, 295, 'S9', NULL, NULL, NULL);
CREATE INDEX ON heap_q (k); CREATE INDEX ON heap_q (big); CREATE INDEX ON heap_q (s, k); CREATE INDEX ON heap_q (s COLLATE "C");
CREATE TABLE lanes_t (LIKE heap_t) USING lanes; INSERT INTO lanes_t SELECT * FROM heap_t;
CREATE TABLE lanes_q (LIKE heap_q) USING lanes; INSERT INTO lanes_q SELECT * FROM heap_q;
ANALYZE heap_t; ANALYZE heap_q; ANALYZE lanes_t; ANALYZE lanes_q;
-- The sub-select is executed once, for all keys.
EXPLAIN (COSTS OFF) SELECT count(*) FROM lanes_t t WHERE v > (SELECT 0.5 * avg(q.v) FROM lanes_q q WHERE q.k = t.k AND q.d < '2026-01-20');
CREATE FUNCTION executions(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN ' || replace(query, '@', 'lanes_') LOOP
    IF line LIKE '%SubPlan%' THEN RETURN 'for each row'; END IF;
  END LOOP;
  RETURN 'once';
END $$;
-- How many rows of a query differ between the tables of both kinds.
CREATE FUNCTION differences(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE lanes text := replace(query, '@', 'lanes_'); heap text := replace(query, '@', 'heap_'); found bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM ((%1$s EXCEPT ALL %2$s) UNION ALL (%2$s EXCEPT ALL %1$s)) x', lanes, heap) INTO found;
  RETURN found;
END $$;
CREATE TABLE queries (number int GENERATED ALWAYS AS IDENTITY, query text);
INSERT INTO queries (query) VALUES
  ('SELECT id FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE v > (SELECT 0.5 * avg(q.v) FROM @q q WHERE q.k = t.k AND q.d < ''2026-01-20'')'),
  ('SELECT id FROM @t t WHERE (SELECT count(*) FROM @q q WHERE q.k = t.k) < 100'),
  ('SELECT id FROM @t t WHERE (SELECT count(q.v) FROM @q q WHERE t.k = q.k AND q.v < 3) = 0'),
  ('SELECT id FROM @t t WHERE n = (SELECT max(q.n) FROM @q q WHERE q.s = t.s)'),
  ('SELECT id FROM @t t WHERE (SELECT sum(q.n * (1 - q.n)) FROM @q q WHERE q.s = t.s AND q.k = t.k) IS NULL'),
  ('SELECT id FROM @t t WHERE v < (SELECT min(q.v) FROM @q q WHERE q.big = t.k) + 5'),
  ('SELECT id FROM @t t WHERE v < (SELECT max(q.v) FROM @q q WHERE q.k = t.big)'),
  ('SELECT id FROM @t t WHERE id < 100 OR v >= (SELECT max(q.v) FILTER (WHERE q.n < 40) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id, (SELECT sum(q.v) FROM @q q WHERE q.k = t.k) FROM @t t'),
  ('SELECT id, (SELECT count(*) FROM @q q WHERE q.k = t.k), (SELECT count(DISTINCT q.s) FROM @q q WHERE q.k = t.k) FROM @t t'),
  ('SELECT id, (SELECT count(*) FROM @q q WHERE q.k = t.k) FROM @t t WHERE (SELECT count(*) FROM @q q WHERE q.k = t.k) > 103'),
  ('SELECT t.id FROM @t t LEFT JOIN @t o ON o.id = t.k + 1 WHERE (SELECT count(*) FROM @q q WHERE q.k = o.k) < 104'),
  ('SELECT id FROM @t WHERE k IN (SELECT k FROM @q x WHERE n > (SELECT avg(q.n) FROM @q q WHERE q.k = x.k AND q.s = x.s))'),
  ('SELECT * FROM (WITH w AS MATERIALIZED (SELECT id FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k)) SELECT count(*) FROM w) x'),
  ('SELECT s, count(*) FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k) GROUP BY s'),
  ('SELECT id FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q JOIN @t x ON x.id = q.k WHERE q.k = t.k AND x.s = ''S1'')'),
  ('SELECT id FROM @t t WHERE (SELECT bool_or(q.v > 90) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q WHERE q.s COLLATE "C" = t.s)');
SELECT number, executions(query), differences(query) FROM queries ORDER BY number;
-- What could fail for keys that no row asks for, what has no groups by equality, what depends on more than the row, and
-- what is not NULL without rows stays as it is.
INSERT INTO queries (query) VALUES
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(1 / (1 + q.v)) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v) FROM @q q WHERE q.k < t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v + t.v) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT coalesce(avg(q.v), 0) FROM @q q WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND (SELECT count(*) + 1 FROM @q q WHERE q.k = t.k) > 1'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k AND random() < 2)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k LIMIT 1)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v < (SELECT max(q.v) FROM @q q JOIN @t x ON 1 / (q.k - 289) = x.id - 5 WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v < (SELECT max(q.v) FROM @q q, generate_series(1, 2, q.k + 1) WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v < (SELECT max(g.v) FROM @q q JOIN (SELECT k, 1 / (k - 289) AS v FROM @q) g ON g.k = q.k WHERE q.k = t.k AND q.s = ''S1'' AND q.v < 3)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v) FROM @q q, generate_series(1, 1 + (random() * 0)::int) WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 50 AND v > (SELECT avg(q.v) FROM @q q TABLESAMPLE SYSTEM (100) WHERE q.k = t.k)'),
  ('SELECT id FROM @t t WHERE id < 20 AND EXISTS (SELECT 1 FROM @t x WHERE x.id < 20 AND x.v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k AND q.s = x.s))');
SELECT number, executions(query), differences(query) FROM queries WHERE number > 19 ORDER BY number;
-- Also where the rows are stored.
CREATE TABLE stored AS SELECT id FROM lanes_t WHERE false;
EXPLAIN (COSTS OFF) INSERT INTO stored SELECT id FROM lanes_t t WHERE v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
-- A few rows that ask are cheaper one by one.
SELECT executions('SELECT id FROM @t t WHERE id = 5 AND v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k)');
-- A key that nobody asks for has no effect, and neither do vectors.
SELECT count(*) FROM lanes_t t WHERE v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
SET lanes.vectorize = off;
SELECT executions('SELECT id FROM @t t WHERE v > (SELECT avg(q.v) FROM @q q WHERE q.k = t.k)');
SELECT count(*) FROM lanes_t t WHERE id < 100 AND v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
RESET lanes.vectorize;
SELECT count(*) FROM lanes_t t WHERE id < 100 AND v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
-- A prepared statement with a parameter, and a cursor, which stays as it is.
PREPARE above (float8) AS SELECT count(*) FROM lanes_t t WHERE v > (SELECT $1 * avg(q.v) FROM lanes_q q WHERE q.k = t.k);
EXECUTE above (1); EXECUTE above (0.5);
SET plan_cache_mode = force_generic_plan;
EXECUTE above (1); EXECUTE above (NULL);
RESET plan_cache_mode;
BEGIN; DECLARE c CURSOR FOR SELECT id FROM lanes_t t WHERE v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k) ORDER BY id; FETCH 3 FROM c; COMMIT;
-- Privileges and policies count as before.
CREATE ROLE correlated_reader; GRANT USAGE ON SCHEMA correlated TO correlated_reader; GRANT SELECT ON lanes_t TO correlated_reader;
SET ROLE correlated_reader;
SELECT count(*) FROM lanes_t t WHERE v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
RESET ROLE;
GRANT SELECT ON lanes_q TO correlated_reader; ALTER TABLE lanes_q ENABLE ROW LEVEL SECURITY; CREATE POLICY even ON lanes_q USING (k % 2 = 0);
SET ROLE correlated_reader;
SELECT count(*) FROM lanes_t t WHERE v > (SELECT avg(q.v) FROM lanes_q q WHERE q.k = t.k);
RESET ROLE;
SELECT count(*) FROM heap_t t WHERE v > (SELECT avg(q.v) FROM heap_q q WHERE q.k = t.k AND q.k % 2 = 0);
DROP SCHEMA correlated CASCADE; DROP ROLE correlated_reader;

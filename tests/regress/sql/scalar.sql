-- Expressions without columns are evaluated for the first row that needs them, as on heap, and
-- initialised once per query.
SET default_table_access_method = lanes; -- Heap tables are marked USING heap.
CREATE TABLE zeros (zero int) USING heap;
INSERT INTO zeros VALUES (0);
CREATE TABLE e (x int, y int, note text, ts timestamptz);

-- Nothing is evaluated without rows.
SELECT count(*) FROM e WHERE x > 10 / (SELECT zero FROM zeros);
SELECT * FROM e WHERE x > (SELECT 10 / zero FROM zeros);
SELECT y, sum(x) FROM e WHERE x > (SELECT 10 / zero FROM zeros) GROUP BY y;
SELECT * FROM e WHERE note = (SELECT 'a' || 10 / zero FROM zeros) ORDER BY x LIMIT 1;
SELECT sum(x) OVER (ORDER BY ts) FROM e WHERE ts > now() - interval '1 s' * (SELECT 10 / zero FROM zeros);
SELECT max(x) FROM e WHERE ts > date_trunc((SELECT 'no unit' || zero FROM zeros), now());
BEGIN;
INSERT INTO e VALUES (1, 1, 'gone', now());
DELETE FROM e;
SELECT * FROM e WHERE x > (SELECT 10 / zero FROM zeros);
COMMIT;

-- A division is not evaluated for rows that an earlier condition excludes.
INSERT INTO e SELECT i, 1, 'n' || i, timestamptz '2026-03-01 00:00Z' + i * interval '1 s' FROM generate_series(1, 1000) i;
SELECT count(*) FROM e WHERE y = 5 AND x > 10 / (SELECT zero FROM zeros);
SELECT count(*) FROM e WHERE x > CASE WHEN (SELECT zero FROM zeros) = 0 THEN 990 ELSE 10 / (SELECT zero FROM zeros) END;
SELECT count(*) FROM e WHERE x > 10 / (SELECT zero + 2 FROM zeros);

-- A row that needs the expression raises its error.
SELECT count(*) FROM e WHERE x > 10 / (SELECT zero FROM zeros);
SELECT count(*) FROM e WHERE x > (SELECT 10 / zero FROM zeros);

-- Rescans: an expression is compiled at most once, and each rescan has its own values.
SET jit = on;
SET jit_above_cost = 0;
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION compiled_functions(query text) RETURNS int LANGUAGE sql AS $$
    -- A server without JIT compiles nothing, and is not tested here.
    SELECT coalesce((pg_temp.analyzed(query) -> 'JIT' ->> 'Functions')::int, 1) $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT compiled_functions($$SELECT g, c FROM generate_series(1, 300) g, LATERAL (SELECT count(*) c FROM e WHERE x = g AND note = 'n' || g) l$$) BETWEEN 1 AND 30 AS few;
SELECT sum(c), count(*), min(g) FILTER (WHERE c = 0) FROM generate_series(900, 1100) g,
  LATERAL (SELECT count(*) c FROM e WHERE x = g AND note = 'n' || g) l;
SELECT g, x, note FROM generate_series(1, 3) g, LATERAL (SELECT x, note FROM e WHERE note = 'n' || (g * 10) LIMIT 1) l ORDER BY g;
DROP FUNCTION compiled_functions(text);

-- Memory of functions that are called for each value is freed while the query runs.
CREATE TABLE texts (note text);
INSERT INTO texts SELECT repeat(md5(i::text), 3) FROM generate_series(1, 60000) i;
SELECT found, (after - before) / 1048576 < 4 AS bounded FROM (SELECT
  (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) AS before,
  (SELECT count(*) FROM texts WHERE note ILIKE '%ABC%') AS found,
  (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) AS after OFFSET 0) s;
SELECT count(*) AS found FROM (SELECT note FROM texts OFFSET 0) s WHERE note ILIKE '%ABC%';
DROP TABLE texts;
DROP TABLE e, zeros;

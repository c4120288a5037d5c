-- ORDER BY and LIMIT above a hash join: the join returns only the rows that can be among the first ones.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA joined_limit; SET search_path = joined_limit;
CREATE TABLE reading (ts timestamptz, series int, n int, value float8, name text) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 s', s, s * 1000 + i,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL WHEN i % 13 = 0 THEN 0 ELSE (s * i) % 97 END, 'name ' || i % 7
    FROM generate_series(1, 60) s, generate_series(1, 400) i;
SELECT lanes.seal('reading');
-- Open rows, NULL keys and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts + interval '1 hour', CASE WHEN series % 5 = 0 THEN NULL ELSE series END, n + 500000, value, name FROM reading WHERE series <= 10;
DELETE FROM reading WHERE series % 13 = 0 AND value < 20;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE dim (id int, region text, tag int) USING heap;
INSERT INTO dim SELECT i, (ARRAY['eu', 'us', NULL, 'ap'])[i % 4 + 1], i % 3 FROM generate_series(1, 50) i;
INSERT INTO dim VALUES (NULL, 'none', 1), (7, 'again', 2), (8, 'again', 2), (8, 'again', 3);
CREATE TABLE tag (tag int, label text) USING heap;
INSERT INTO tag VALUES (0, 'zero'), (1, 'one'), (1, 'uno'), (2, 'two');
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading';

-- Of these small tables a nested loop over LanesTopN is as cheap. The test is about the other plan.
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT r.ts, r.value, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.region = 'eu' ORDER BY r.ts DESC, r.n LIMIT 5;

-- Both directions, NULL first and last, NaN, offsets, and ties that further keys order.
SELECT pg_temp.same_order('SELECT r.*, d.region FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.ts DESC, r.n, d.tag, d.region LIMIT 7', 'Row Limit: 7 by');
SELECT pg_temp.same_order('SELECT r.*, d.region FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.ts, r.n DESC, d.tag, d.region LIMIT 7 OFFSET 40', 'Row Limit: 47 by');
SELECT pg_temp.same_order('SELECT r.value, r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.value, r.n, d.tag LIMIT 30', 'Row Limit: 30 by');
SELECT pg_temp.same_order('SELECT r.value, r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.value DESC, r.n, d.tag LIMIT 30', 'Row Limit: 30 by');
SELECT pg_temp.same_order('SELECT r.value, r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.value DESC NULLS LAST, r.n, d.tag LIMIT 2000', 'Row Limit: 2000 by');
SELECT pg_temp.same_order('SELECT r.value, r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.value NULLS FIRST, r.n, d.tag LIMIT 2000', 'Row Limit: 2000 by');
-- An expression; a key of the small side after that of the table; duplicates on the small side.
SELECT pg_temp.same_order('SELECT r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n % 100, d.tag, r.n LIMIT 12', 'Row Limit: 12 by');
SELECT pg_temp.same_order('SELECT r.n, d.tag, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE r.series IN (7, 8) ORDER BY r.n, d.tag, d.region LIMIT 9', 'LanesHashJoin');
-- LEFT, SEMI and ANTI joins, stars and snowflakes.
SELECT pg_temp.same_order('SELECT r.n, d.region FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.tag = 1 ORDER BY r.n DESC, d.region LIMIT 20', 'Row Limit: 20 by');
SELECT pg_temp.same_order('SELECT r.n FROM reading r WHERE EXISTS (SELECT FROM dim d WHERE d.id = r.series AND d.region = ''us'') ORDER BY r.n DESC LIMIT 20', 'Row Limit: 20 by');
SELECT pg_temp.same_order('SELECT r.n FROM reading r WHERE NOT EXISTS (SELECT FROM dim d WHERE d.id = r.series) ORDER BY r.n DESC LIMIT 20', 'Row Limit: 20 by');
SELECT pg_temp.same_order('SELECT r.n, d.region, t.label FROM reading r JOIN dim d ON d.id = r.series JOIN tag t ON t.tag = d.tag ORDER BY r.n, t.label, d.region LIMIT 11', 'Row Limit: 11 by');
SELECT pg_temp.same_order('SELECT r.n, d.region, t.label FROM reading r JOIN dim d ON d.id = r.series JOIN tag t ON t.tag = r.n % 3 ORDER BY r.n DESC, t.label, d.region LIMIT 11', 'LanesHashJoin');
-- Conditions of both sides; fewer rows than the limit, and none.
SELECT pg_temp.same_order('SELECT r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series WHERE r.value > 50 AND d.region = ''eu'' ORDER BY r.ts DESC, r.n, d.tag LIMIT 3', 'Row Limit: 3 by');
SELECT pg_temp.same_order('SELECT r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series WHERE r.n % 1000 < 2 AND d.id = 7 ORDER BY r.ts DESC, r.n, d.tag LIMIT 1000', 'LanesTopN');
SELECT pg_temp.same_order('SELECT r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series WHERE d.region = ''mars'' ORDER BY r.ts DESC, r.n, d.tag LIMIT 3', 'LanesHashJoin');
-- The table is joined once more for each outer row, with another limit to reach.
SELECT pg_temp.same_order('SELECT g, s.* FROM generate_series(0, 2) g CROSS JOIN LATERAL (SELECT r.n, d.tag FROM reading r JOIN dim d ON d.id = r.series WHERE d.tag = g ORDER BY r.ts DESC, r.n, d.tag LIMIT 4) s ORDER BY g, s.n, s.tag', 'Row Limit: 4 by');
-- No limit on the join: the first key is of the small side, or a text; the limit is not known, or has ties; the join returns small rows; groups.
CREATE FUNCTION pg_temp.has_limit(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        IF line ~ 'Row Limit' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT pg_temp.has_limit('SELECT r.n FROM reading r JOIN dim d ON d.id = r.series ORDER BY d.region, r.n LIMIT 3'),
       pg_temp.has_limit('SELECT r.n FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.name, r.n LIMIT 3'),
       pg_temp.has_limit('SELECT r.n FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n LIMIT (SELECT 3)'),
       pg_temp.has_limit('SELECT r.n FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n FETCH FIRST 3 ROWS WITH TIES'),
       pg_temp.has_limit('SELECT r.n FROM reading r RIGHT JOIN dim d ON d.id = r.series ORDER BY r.n LIMIT 3'),
       pg_temp.has_limit('SELECT DISTINCT r.n FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n LIMIT 3'),
       pg_temp.has_limit('SELECT r.n, generate_series(1, 0) FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n LIMIT 3'),
       pg_temp.has_limit('SELECT r.n, count(*) OVER () FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.n LIMIT 3');
-- A cursor goes back and forth over the limited rows, and a generic plan has the limit.
BEGIN;
DECLARE first SCROLL CURSOR FOR SELECT r.n, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 7 ORDER BY r.n DESC, d.region LIMIT 4;
FETCH 3 FROM first; FETCH BACKWARD 2 FROM first; FETCH ALL FROM first;
COMMIT;
SET plan_cache_mode = force_generic_plan;
PREPARE newest(int) AS SELECT r.n, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id = $1 ORDER BY r.ts DESC LIMIT 2;
EXPLAIN (COSTS OFF) EXECUTE newest(3);
EXECUTE newest(3); EXECUTE newest(9); EXECUTE newest(13);
-- Vectors whose rows all come after the bound are not joined.
SELECT (plan ->> 'Vector Rows Passed')::int AS joined FROM (SELECT pg_temp.analyzed('SELECT r.n, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 40 ORDER BY r.n DESC LIMIT 2') -> 'Plan' -> 'Plans' -> 0 -> 'Plans' -> 0 AS plan) x;
DROP SCHEMA joined_limit CASCADE;

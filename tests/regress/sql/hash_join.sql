-- Hash joins of a lanes table with a smaller relation: plans, and answers compared with those
-- without vectors and on heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA hash_join; SET search_path = hash_join;
CREATE TABLE reading (ts timestamptz, series int, host text, day date, wide int8, narrow int2, value float8) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 s', s, 'h' || s % 90, date '2024-01-01' + i / 20, s * 1000000000::int8, s % 50,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (s * i) % 97 END
    FROM generate_series(1, 120) s, generate_series(1, 200) i;
SELECT lanes.seal('reading');
-- Open rows, NULL keys and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts + interval '1 hour', CASE WHEN series % 5 = 0 THEN NULL ELSE series END, CASE WHEN series % 7 = 0 THEN NULL ELSE host END, day, NULL, narrow, value
    FROM reading WHERE series <= 20;
DELETE FROM reading WHERE series % 13 = 0 AND value < 20;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
-- Dimensions are heap tables: unique, with NULLs, with duplicates, empty; one is a lanes table.
CREATE TABLE dim (id int, host text, region text, factor float8, tag numeric, info jsonb, day date, wide int8) USING heap;
INSERT INTO dim SELECT i, 'h' || i, (ARRAY['eu', 'us', NULL, 'ap'])[i % 4 + 1], i / 8.0, (i % 3)::numeric / 2, jsonb_build_object('zone', 'z' || i % 3), date '2024-01-01' + i, i * 1000000000::int8
    FROM generate_series(1, 100) i;
INSERT INTO dim VALUES (NULL, NULL, 'none', 1, 3::numeric / 2, NULL, NULL, NULL), (NULL, 'h3', 'none', NULL, NULL, '{}', NULL, 5), (7, 'h7', 'again', 2, 1::numeric / 2, '{"zone": "z1"}', '2024-01-03', 7000000000);
CREATE TABLE many (id int, host text, part int) USING heap;
INSERT INTO many SELECT i % 40, 'h' || i % 30, i FROM generate_series(1, 200) i;
CREATE TABLE empty (id int, host text) USING heap;
CREATE TABLE lanes_dim AS SELECT * FROM dim;
CREATE TABLE lanes_dim_heap USING heap AS SELECT * FROM dim;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading|lanes_dim';

-- Plans: the keys of the small side exclude segments and vectors before they are decoded.
EXPLAIN (COSTS OFF) SELECT r.ts, r.value, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.host = 'h9' AND r.ts < '2024-01-02';
EXPLAIN (COSTS OFF) SELECT d.region, count(*), avg(r.value) FROM reading r JOIN dim d ON d.id = r.series GROUP BY d.region;
EXPLAIN (COSTS OFF) SELECT count(*) FROM reading WHERE host IN (SELECT host FROM many WHERE part < 4);
CREATE FUNCTION pg_temp.skipped(query text) RETURNS boolean LANGUAGE sql AS $$
    SELECT (plan ->> 'Vectors Skipped By Join Keys')::int > 0 AND (plan ->> 'Rows Scanned')::int < 6000 FROM (SELECT pg_temp.analyzed(query) -> 'Plan' AS plan) x $$;
SELECT pg_temp.skipped('SELECT r.value FROM reading r JOIN dim d ON d.id = r.series WHERE d.host = ''h90''');
SELECT pg_temp.skipped('SELECT sum(r.narrow) FROM reading r JOIN dim d ON d.id = r.series WHERE d.host = ''h90'' GROUP BY d.region');

-- Rows: keys of all types, several keys, duplicates, NULLs, an empty side, conditions on both sides.
SELECT pg_temp.same('SELECT r.*, d.* FROM reading r JOIN dim d ON d.id = r.series WHERE d.region = ''eu'' AND r.value > 50');
SELECT pg_temp.same('SELECT r.ts, d.region, d.info FROM reading r JOIN dim d ON d.host = r.host WHERE r.narrow < 5');
SELECT pg_temp.same('SELECT r.series, d.tag FROM reading r JOIN dim d ON r.day = d.day WHERE r.series < 9');
SELECT pg_temp.same('SELECT r.series, d.tag FROM dim d JOIN reading r ON r.wide = d.wide WHERE d.id < 9');
SELECT pg_temp.same('SELECT r.series, d.id FROM reading r JOIN dim d ON d.wide = r.series');
SELECT pg_temp.same('SELECT r.series, m.part FROM reading r JOIN many m ON m.id = r.narrow AND m.host = r.host');
SELECT pg_temp.same('SELECT count(r.ts), m.part FROM reading r JOIN many m ON m.host = r.host AND m.id = r.series GROUP BY m.part');
SELECT pg_temp.same('SELECT r.ts, m.id FROM reading r JOIN many m ON m.id = r.series AND m.part < 60');
SELECT pg_temp.same('SELECT r.ts, e.host FROM reading r JOIN empty e ON e.id = r.series');
SELECT pg_temp.same('SELECT r.series, d.id + r.narrow AS x FROM reading r JOIN dim d ON d.id + 1 = r.series WHERE d.id < 20');
SELECT pg_temp.same('SELECT r.series FROM reading r JOIN dim d ON d.id = r.series + 1 WHERE d.id < 20');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN (VALUES (3), (3), (NULL), (200)) v (id) ON v.id = r.series');
SELECT pg_temp.same('SELECT r.series, g FROM reading r JOIN generate_series(1, 5) g ON g = r.narrow WHERE r.series < 80');
SELECT pg_temp.same('SELECT a.series, b.region FROM reading a JOIN lanes_dim b ON b.id = a.series WHERE b.region = ''us''');
SELECT pg_temp.same('WITH few AS MATERIALIZED (SELECT id, host FROM dim WHERE id < 4) SELECT r.value, f.host FROM reading r JOIN few f ON f.id = r.series');
SELECT pg_temp.same('SELECT r.series, d.region, m.part FROM reading r JOIN dim d ON d.id = r.series JOIN many m ON m.id = d.id WHERE d.id < 10');
-- The storage of a column has long headers for short texts, and then short ones.
CREATE TABLE plain (k text, v int);
ALTER TABLE plain ALTER k SET STORAGE PLAIN;
INSERT INTO plain SELECT 'h' || i % 5, i FROM generate_series(1, 20) i;
ALTER TABLE plain ALTER k SET STORAGE EXTENDED;
INSERT INTO plain SELECT 'h' || i % 5, i FROM generate_series(21, 40) i;
SELECT count(*), sum(p.v) FROM plain p JOIN dim d ON d.host = p.k;
SELECT k, count(*), sum(v) FROM plain GROUP BY k ORDER BY k;
-- SEMI joins.
SELECT pg_temp.same('SELECT * FROM reading WHERE series IN (SELECT id FROM many)');
SELECT pg_temp.same('SELECT * FROM reading r WHERE EXISTS (SELECT FROM many m WHERE m.id = r.series AND m.host = r.host)');
SELECT pg_temp.same('SELECT count(*), sum(wide) FROM reading WHERE host IN (SELECT host FROM many WHERE part < 9)');
SELECT pg_temp.same('SELECT narrow, count(*) FROM reading WHERE series IN (SELECT id FROM empty) GROUP BY narrow');
-- LEFT and ANTI joins: rows without a match, and rows with NULL keys.
SELECT pg_temp.same('SELECT r.series, d.region FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE r.narrow < 3');
SELECT pg_temp.same('SELECT r.ts, r.host, m.part FROM reading r LEFT JOIN many m ON m.host = r.host AND m.id = r.series AND m.part > 20');
SELECT pg_temp.same('SELECT r.ts, e.host FROM reading r LEFT JOIN empty e ON e.id = r.series WHERE r.series < 3');
SELECT pg_temp.same('SELECT coalesce(d.region, ''none'') AS region, d.tag, count(*), count(d.id), sum(d.factor), sum(r.narrow) FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.id < 60 GROUP BY 1, 2');
SELECT pg_temp.same('SELECT m.part, count(*) FROM reading r LEFT JOIN many m ON m.id = r.series GROUP BY 1');
SELECT pg_temp.same('SELECT count(*), count(e.id) FROM reading r LEFT JOIN empty e ON e.id = r.series');
SELECT pg_temp.same('SELECT * FROM reading WHERE NOT EXISTS (SELECT FROM many m WHERE m.id = reading.series)');
SELECT pg_temp.same('SELECT r.series, d.id FROM reading r LEFT JOIN dim d ON d.host = r.host WHERE d.host IS NULL');
SELECT pg_temp.same('SELECT narrow, count(*) FROM reading r WHERE NOT EXISTS (SELECT FROM dim d WHERE d.id = r.series AND d.region = ''eu'') GROUP BY narrow');
SELECT pg_temp.same('SELECT count(*) FROM reading WHERE NOT EXISTS (SELECT FROM empty e WHERE e.id = reading.series)');
SELECT pg_temp.same('SELECT r.series, d.region FROM reading r LEFT JOIN dim d ON d.id = r.series WHERE d.region IS DISTINCT FROM ''eu'' AND r.narrow < 4');
-- Joins that are left to PostgreSQL.
SELECT pg_temp.same('SELECT d.id, r.value FROM dim d LEFT JOIN reading r ON d.id = r.series AND r.value > 90');
SELECT pg_temp.same('SELECT count(*) FROM reading r FULL JOIN dim d ON d.id = r.series');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN dim d ON d.id = r.series AND d.factor < r.value');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN dim d ON d.factor = r.value');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN dim d ON d.day = r.ts');
SELECT pg_temp.same('SELECT r.series, d.region FROM reading r JOIN dim d ON d.id = r.series LEFT JOIN many m ON m.id = d.id AND m.part > r.narrow WHERE d.id < 4');

-- Groups by columns and expressions of the small side and of both sides, by types whose equality is
-- not that of bytes; aggregates of both sides.
SELECT pg_temp.same('SELECT d.region, count(*), sum(r.wide), min(r.value), max(r.value) FROM reading r JOIN dim d ON d.id = r.series GROUP BY d.region');
SELECT pg_temp.same('SELECT d.tag, count(*) FROM reading r JOIN dim d ON d.id = r.series GROUP BY d.tag');
SELECT pg_temp.same('SELECT d.info ->> ''zone'' AS zone, date_trunc(''hour'', r.ts) AS hour, count(*), count(r.value) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.info, upper(d.region), r.narrow % 10 AS n, count(*) FROM reading r JOIN dim d ON d.host = r.host GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT d.region, r.host, count(*) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1, 2 HAVING count(*) > 100');
SELECT pg_temp.same('SELECT r.host, sum(d.id * r.narrow), max(d.factor), count(d.factor) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1');
SELECT pg_temp.same('SELECT count(*), sum(d.id), sum(m.part) FROM reading r JOIN dim d ON d.id = r.series JOIN many m ON m.id = d.id');
SELECT pg_temp.same('SELECT m.id, count(*), sum(m.part) FROM reading r JOIN many m ON m.id = r.series GROUP BY m.id');
SELECT pg_temp.same('SELECT count(*), sum(r.narrow) FROM reading r JOIN empty e ON e.id = r.series');
SELECT pg_temp.same('SELECT e.host, count(*) FROM reading r JOIN empty e ON e.id = r.series GROUP BY e.host');
-- A small side's column that equals a column of the lanes table is grouped as that one. Exceptions
-- are floats, other types, and the null side of an outer join.
EXPLAIN (COSTS OFF) SELECT d.id, d.id % 3 AS rest, d.wide, count(*), sum(r.narrow) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1, 2, 3;
EXPLAIN (COSTS OFF) SELECT v.x, count(*) FROM reading r JOIN (VALUES (float8 '-0'), (1)) v (x) ON v.x = r.value GROUP BY v.x;
EXPLAIN (COSTS OFF) SELECT d.id, count(*) FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.id < 60 GROUP BY d.id;
SELECT pg_temp.same('SELECT d.id, d.id % 3 AS rest, d.wide, count(*), sum(r.narrow) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT v.x, count(*) FROM reading r JOIN (VALUES (float8 ''-0''), (1)) v (x) ON v.x = r.value GROUP BY v.x');
SELECT pg_temp.same('SELECT d.id, count(*) FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.id < 60 GROUP BY d.id');
SELECT pg_temp.same('SELECT d.host, upper(d.host) AS upper, d.day, count(*) FROM reading r JOIN dim d ON d.host = r.host AND d.day = r.day GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT d.wide, count(*) FROM reading r JOIN dim d ON d.wide = r.series * 1000000000::int8 GROUP BY d.wide');
SELECT pg_temp.same('SELECT DISTINCT d.id, r.narrow FROM reading r JOIN dim d ON d.id = r.series');
-- An expression in the target list that is also a condition.
SELECT pg_temp.same('SELECT d.region, r.narrow > 3 AS condition, count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE r.narrow > 3 GROUP BY d.region, r.narrow');
SELECT pg_temp.same('SELECT narrow > 3 AS condition, narrow + 1 AS next, count(*) FROM reading WHERE narrow > 3 AND narrow + 1 < 40 GROUP BY narrow');
SELECT pg_temp.same('SELECT r.series + 0 AS key, d.region, count(*) FROM reading r JOIN dim d ON d.id = r.series + 0 GROUP BY r.series, d.region');
SELECT pg_temp.same('SELECT DISTINCT ON (r.series + 0) r.series + 0 AS key, r.narrow > 3 AS condition, r.ts FROM reading r JOIN dim d ON d.id = r.series WHERE r.narrow > 3 ORDER BY r.series + 0, r.ts, d.factor');
SELECT pg_temp.same('SELECT d.region, count(DISTINCT r.host) FROM reading r JOIN dim d ON d.id = r.series GROUP BY d.region');
-- DISTINCT, and the first joined row of each group: groups and order of either side, NULLs,
-- duplicates, rows without a match.
EXPLAIN (COSTS OFF) SELECT DISTINCT d.region FROM reading r JOIN dim d ON d.id = r.series WHERE r.ts < '2024-01-02';
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (r.series) d.region, r.value FROM reading r JOIN dim d ON d.id = r.series WHERE r.ts < '2024-01-02' ORDER BY r.series, r.ts DESC;
SELECT pg_temp.same('SELECT DISTINCT d.region, r.narrow % 3 AS n FROM reading r JOIN dim d ON d.id = r.series');
SELECT pg_temp.same('SELECT DISTINCT r.host FROM reading r JOIN many m ON m.id = r.series');
SELECT pg_temp.same('SELECT DISTINCT d.info ->> ''zone'' AS zone FROM reading r LEFT JOIN dim d ON d.id = r.series');
SELECT pg_temp.same('SELECT DISTINCT e.host FROM reading r JOIN empty e ON e.id = r.series');
SELECT pg_temp.same('SELECT DISTINCT ON (r.series) r.*, d.region, d.info FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.series, r.ts DESC, d.factor');
SELECT pg_temp.same('SELECT DISTINCT ON (r.series) d.host || r.series::text AS x FROM reading r JOIN dim d ON d.id = r.series WHERE r.value < 60 ORDER BY r.series, r.ts, d.factor');
SELECT pg_temp.same('SELECT DISTINCT ON (d.region) d.region, r.ts, r.series FROM reading r JOIN dim d ON d.id = r.series ORDER BY d.region, r.ts DESC, r.series');
SELECT pg_temp.same('SELECT DISTINCT ON (d.region, r.narrow % 4) d.region, r.narrow % 4 AS n, r.ts, r.series, d.id FROM reading r JOIN dim d ON d.host = r.host ORDER BY d.region, r.narrow % 4, r.value NULLS FIRST, r.ts, r.series, d.factor');
SELECT pg_temp.same('SELECT DISTINCT ON (m.part) m.part, r.ts, r.series, r.host FROM reading r JOIN many m ON m.id = r.series ORDER BY m.part, r.value DESC NULLS LAST, r.ts, r.series');
SELECT pg_temp.same('SELECT DISTINCT ON (r.host) r.host, r.series, m.part FROM reading r JOIN many m ON m.host = r.host ORDER BY r.host, m.part DESC, r.ts, r.series');
SELECT pg_temp.same('SELECT DISTINCT ON (m.part % 7) m.part, r.ts FROM reading r JOIN many m ON m.id = r.series WHERE r.series < 30 ORDER BY m.part % 7, m.part, r.ts');
SELECT pg_temp.same('SELECT DISTINCT ON (r.series) r.series, r.ts, d.region FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.id < 50 ORDER BY r.series, r.ts DESC, r.host, d.factor');
SELECT pg_temp.same('SELECT DISTINCT ON (d.id) d.id, r.ts, r.series, r.host FROM reading r LEFT JOIN dim d ON d.id = r.series AND d.id < 50 ORDER BY d.id, r.ts DESC, r.series, r.host');
SELECT pg_temp.same('SELECT DISTINCT ON (narrow) narrow, ts, series FROM reading r WHERE EXISTS (SELECT FROM many m WHERE m.id = r.series) ORDER BY narrow, ts DESC, series');
SELECT pg_temp.same('SELECT DISTINCT ON (narrow) narrow, ts, series, host FROM reading r WHERE NOT EXISTS (SELECT FROM many m WHERE m.id = r.series) ORDER BY narrow, ts DESC, series, host');
SELECT pg_temp.same('SELECT DISTINCT ON (r.series) r.ts FROM reading r JOIN empty e ON e.id = r.series ORDER BY r.series, r.ts');
SELECT pg_temp.same('SELECT DISTINCT ON (a.series) a.series, a.ts, b.region FROM reading a JOIN lanes_dim b ON b.id = a.series ORDER BY a.series, a.ts DESC, b.factor');
-- An order by a text, and row locks, are left to PostgreSQL.
SELECT pg_temp.same('SELECT DISTINCT ON (r.series) r.series, d.region FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.series, d.region');
-- Rescans, each with several groups: newer versions plan a single group without DISTINCT ON.
SELECT pg_temp.same('SELECT o.id, x.ts, x.region FROM dim o CROSS JOIN LATERAL (SELECT DISTINCT ON (r.series) r.ts, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE r.narrow = o.id ORDER BY r.series, r.ts DESC, d.factor) x');
SELECT pg_temp.same('SELECT o.id, x.* FROM generate_series(1, 3) o (id) CROSS JOIN LATERAL (SELECT o.id + y.n AS n FROM (SELECT DISTINCT ON (r.narrow) r.narrow AS n FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.narrow, r.ts) y) x');

-- An expression over the small side only fails for rows that join a left row.
SELECT pg_temp.same('SELECT 10 / (d.id - 90) AS x, count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE d.id BETWEEN 85 AND 95 AND r.series < 90 GROUP BY 1');
SELECT pg_temp.same('SELECT 10 / (d.id - 90) AS x, count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE d.id BETWEEN 85 AND 95 GROUP BY 1');

-- Batches: a small side that exceeds its memory.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE TABLE large (id int, text text) USING heap;
INSERT INTO large SELECT i % 300, repeat(i::text, 20) FROM generate_series(1, 3000) i;
ANALYZE large;
SELECT pg_temp.same('SELECT count(*), sum(l.id), sum(r.narrow) FROM reading r JOIN large l ON l.id = r.series');
SELECT pg_temp.same('SELECT l.text, count(*) FROM reading r JOIN large l ON l.id = r.series WHERE r.series < 20 GROUP BY l.text');
SELECT pg_temp.same('SELECT r.narrow, md5(l.text) FROM reading r JOIN large l ON l.id = r.series WHERE r.series < 12');
SELECT pg_temp.same('SELECT r.narrow, md5(l.text) FROM reading r LEFT JOIN large l ON l.id = r.series WHERE r.series < 12');
SELECT pg_temp.same('SELECT count(*), sum(r.narrow) FROM reading r WHERE NOT EXISTS (SELECT FROM large l WHERE l.id = r.series)');
SELECT pg_temp.same('SELECT DISTINCT ON (r.narrow) r.narrow, l.text = '''' AS t, r.series FROM reading r JOIN large l ON l.id = r.series ORDER BY r.narrow, r.ts, r.series, l.id');
SELECT pg_temp.hands_over('SELECT DISTINCT ON (r.narrow) l.text FROM reading r JOIN large l ON l.id = r.series ORDER BY r.narrow, r.ts'),
    pg_temp.hands_over('SELECT DISTINCT ON (r.narrow) l.id FROM reading r JOIN large l ON l.id = r.series WHERE l.id < 9 ORDER BY r.narrow, r.ts');
SELECT count(*) FROM (SELECT DISTINCT ON (l.text) r.series FROM reading r JOIN large l ON l.id = r.series ORDER BY l.text, r.ts, r.series) x;
CREATE FUNCTION pg_temp.batches(query text) RETURNS boolean LANGUAGE sql AS $$
    SELECT (plan ->> 'Batches')::int > 1 AND (plan ->> 'Small Side Memory')::int < 200 FROM (SELECT pg_temp.analyzed(query) -> 'Plan' AS plan) x $$;
SELECT pg_temp.batches('SELECT count(*), sum(l.id) FROM reading r JOIN large l ON l.id = r.series');
RESET work_mem; RESET hash_mem_multiplier;

-- Parameters, generic plans, rescans, cursors.
PREPARE of_host(text, float8) AS SELECT r.series, count(*), sum(r.narrow) FROM reading r JOIN dim d ON d.id = r.series WHERE d.host = $1 AND (r.value > $2 OR r.value IS NULL) GROUP BY 1;
SET plan_cache_mode = force_generic_plan;
EXECUTE of_host('h4', 10); EXECUTE of_host('h5', 90); EXECUTE of_host(NULL, 1);
RESET plan_cache_mode;
SELECT pg_temp.same('SELECT o.id, x.n, x.s FROM dim o CROSS JOIN LATERAL (SELECT count(*) AS n, sum(r.narrow) AS s FROM reading r JOIN many m ON m.id = r.series WHERE m.part = o.id) x');
SELECT pg_temp.same('SELECT o.id, (SELECT max(m.part) FROM reading r JOIN many m ON m.id = r.series WHERE r.narrow = o.id AND m.part < 100) FROM dim o WHERE o.id < 12');
BEGIN;
DECLARE rows NO SCROLL CURSOR FOR SELECT r.ts, r.series, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 3 ORDER BY 2, 1;
FETCH 2 FROM rows; MOVE 150 IN rows; FETCH 1 FROM rows;
ROLLBACK;
BEGIN;
DECLARE rows NO SCROLL CURSOR FOR SELECT DISTINCT ON (r.series) r.series, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 5 ORDER BY r.series, r.ts DESC;
FETCH 2 FROM rows; MOVE 1 IN rows; FETCH 5 FROM rows;
ROLLBACK;
BEGIN;
DECLARE rows SCROLL CURSOR FOR SELECT r.ts, r.series FROM reading r JOIN dim d ON d.id = r.series WHERE d.id = 2;
FETCH 2 FROM rows; FETCH BACKWARD 1 FROM rows;
ROLLBACK;
-- Rows written in the same transaction, and rows that are locked or changed through the join.
BEGIN;
INSERT INTO reading VALUES ('2025-01-01', 1, 'h1', NULL, NULL, 1, 1);
SELECT count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE r.ts = '2025-01-01';
UPDATE reading r SET value = d.factor FROM dim d WHERE d.id = r.series AND r.ts = '2025-01-01';
SELECT r.value FROM reading r JOIN dim d ON d.id = r.series WHERE r.ts = '2025-01-01' FOR UPDATE OF r;
DELETE FROM reading r USING dim d WHERE d.id = r.series AND d.id = 1;
SELECT count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 3;
ROLLBACK;
-- CREATE TABLE AS, and settings that disable the join.
CREATE TABLE copy AS SELECT r.ts, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 4;
INSERT INTO copy SELECT r.ts, d.region FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 4;
SELECT region, count(*) FROM copy GROUP BY region ORDER BY region;
SET enable_hashjoin = off;
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE d.id = 5');
RESET enable_hashjoin;

-- Privileges and row-level security of the tables apply.
CREATE ROLE regress_hash_join;
GRANT USAGE ON SCHEMA hash_join TO regress_hash_join;
GRANT SELECT (series, value) ON reading TO regress_hash_join;
GRANT SELECT (id, region) ON dim TO regress_hash_join;
SET ROLE regress_hash_join;
SELECT d.region, count(*) FROM reading r JOIN dim d ON d.id = r.series WHERE d.id < 3 GROUP BY 1 ORDER BY 1;
SELECT d.host, count(*) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1;
SELECT r.host FROM reading r JOIN dim d ON d.id = r.series;
SELECT DISTINCT ON (r.series) r.host FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.series, r.value;
RESET ROLE;
GRANT SELECT ON reading, dim TO regress_hash_join;
ALTER TABLE reading ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON reading TO regress_hash_join USING (narrow < 3);
ALTER TABLE dim ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON dim TO regress_hash_join USING (region = 'eu');
SET ROLE regress_hash_join;
SELECT d.region, r.narrow, count(*) FROM reading r JOIN dim d ON d.id = r.series GROUP BY 1, 2 ORDER BY 1, 2;
SELECT DISTINCT ON (r.narrow) r.narrow, r.ts, d.region FROM reading r JOIN dim d ON d.id = r.series ORDER BY r.narrow, r.ts DESC;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA hash_join CASCADE;
DROP ROLE regress_hash_join;

-- Stars: a lanes table joined with several smaller relations, each by its own keys, in one node.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA star_join; SET search_path = star_join;
CREATE TABLE reading (ts timestamptz, series int, host text, kind int2, day date, value float8) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 minutes', s, 'h' || s % 40, (s + i) % 7, date '2024-01-01' + i / 20,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL ELSE (s * i) % 97 END
    FROM generate_series(1, 60) s, generate_series(1, 150) i;
SELECT lanes.seal('reading');
-- Open rows, NULL keys and deleted rows beside the sealed ones.
INSERT INTO reading SELECT ts + interval '1 hour', CASE WHEN series % 5 = 0 THEN NULL ELSE series END, CASE WHEN series % 7 = 0 THEN NULL ELSE host END, NULLIF(kind, 3), day, value
    FROM reading WHERE series <= 15;
DELETE FROM reading WHERE series % 13 = 0;
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE device (id int, host text, region text) USING heap;
INSERT INTO device SELECT i, 'h' || i, (ARRAY['eu', 'us', NULL, 'ap'])[i % 4 + 1] FROM generate_series(1, 50) i;
-- Duplicates and NULLs on every side.
INSERT INTO device VALUES (7, 'h7', 'again'), (7, NULL, 'third'), (NULL, 'h3', 'none');
CREATE TABLE kind (kind int, name text, weight numeric) USING heap;
INSERT INTO kind VALUES (0, 'zero', 1), (1, 'one', 1), (1, 'uno', 2), (2, 'two', NULL), (5, NULL, 3), (NULL, 'null', 4), (9, 'nine', 5);
CREATE TABLE holiday (day date, title text) USING heap;
INSERT INTO holiday VALUES ('2024-01-02', 'a'), ('2024-01-04', 'b'), ('2024-01-04', 'c');
CREATE TABLE owner (host text, person text) USING heap;
INSERT INTO owner SELECT 'h' || i % 30, 'p' || i % 4 FROM generate_series(1, 45) i;
CREATE TABLE crowd (id int, payload text) USING heap;
INSERT INTO crowd SELECT i % 70, repeat('x', 40) || i FROM generate_series(1, 2000) i;
CREATE TABLE empty (id int, region text) USING heap;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading';

EXPLAIN (COSTS OFF) SELECT d.region, k.name, count(*), avg(r.value) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind GROUP BY 1, 2;
EXPLAIN (COSTS OFF) SELECT r.ts, d.region, k.name FROM reading r JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind WHERE r.value > 90;

-- Rows of two and three dimensions: each pair of duplicates joins once.
SELECT pg_temp.same('SELECT r.ts, r.series, d.region, k.name FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT r.ts, r.series, d.region, k.name, h.title FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind JOIN holiday h ON h.day = r.day');
SELECT pg_temp.same('SELECT r.ts, r.host, d.id, k.weight, o.person FROM reading r JOIN device d ON d.host = r.host AND d.id = r.series JOIN kind k ON k.kind = r.kind JOIN owner o ON o.host = r.host WHERE r.value > 40');
-- Outer, semi and anti joins among them.
SELECT pg_temp.same('SELECT r.ts, r.series, d.region, k.name FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT r.ts, r.series, d.region, k.name FROM reading r LEFT JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT r.ts, d.region FROM reading r JOIN device d ON d.id = r.series WHERE r.kind IN (SELECT kind FROM kind WHERE weight > 1)');
SELECT pg_temp.same('SELECT r.ts, d.region FROM reading r JOIN device d ON d.id = r.series WHERE NOT EXISTS (SELECT FROM holiday h WHERE h.day = r.day)');
SELECT pg_temp.same('SELECT r.ts, d.region, k.name FROM reading r JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind WHERE EXISTS (SELECT FROM owner o WHERE o.host = r.host)');
SELECT pg_temp.same('SELECT r.ts, d.region FROM reading r LEFT JOIN device d ON d.id = r.series JOIN empty e ON e.id = r.kind');
SELECT pg_temp.same('SELECT r.ts, e.region, d.region AS other FROM reading r LEFT JOIN empty e ON e.id = r.kind JOIN device d ON d.id = r.series');
-- Aggregates: keys of several sides, expressions over one of them, functions of all.
SELECT pg_temp.same('SELECT d.region, k.name, count(*), sum(r.value), sum(k.kind), max(d.id) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind GROUP BY 1, 2');
SELECT pg_temp.same('SELECT upper(d.region), k.weight, date_trunc(''day'', r.ts) AS day, count(r.value) FROM reading r JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT h.title, o.person, d.region, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN holiday h ON h.day = r.day JOIN owner o ON o.host = r.host GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT count(*), sum(r.value) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT d.region || k.name AS both, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT sum(d.id * k.kind), count(*) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT d.region, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN empty e ON e.id = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT DISTINCT d.region, k.name FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
-- Queries that remain a chain of joins, or PostgreSQL's: a key of one dimension in another, a
-- condition on two of them, RIGHT joins, DISTINCT ON.
SELECT pg_temp.same('SELECT d.region, o.person, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN owner o ON o.host = d.host GROUP BY 1, 2');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind AND k.weight < d.id');
SELECT pg_temp.same('SELECT k.name, d.region, count(r.value) FROM kind k LEFT JOIN (reading r JOIN device d ON d.id = r.series) ON k.kind = r.kind GROUP BY 1, 2');
SELECT pg_temp.same('SELECT DISTINCT ON (d.region) d.region, k.name, r.ts, r.series FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind ORDER BY d.region, r.ts DESC, r.series, k.name');
SELECT pg_temp.same('SELECT count(*) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.series');
-- With a LIMIT, in a LATERAL with rescans, and in a prepared statement.
SELECT count(*) FROM (SELECT r.ts FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind LIMIT 5) x;
SELECT pg_temp.same('SELECT v.n, x.c FROM (VALUES (1), (2), (30)) v(n), LATERAL (SELECT count(*) AS c FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind WHERE r.value > v.n) x');
SET plan_cache_mode = force_generic_plan;
PREPARE counted(int) AS SELECT k.name, count(*) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind WHERE r.value > $1 GROUP BY 1 ORDER BY 1;
EXECUTE counted(50); EXECUTE counted(NULL); EXECUTE counted(90);
-- Small sides that exceed their memory: PostgreSQL's own plan takes over while the node runs.
CREATE FUNCTION pg_temp.crowded() RETURNS SETOF crowd LANGUAGE plpgsql STABLE ROWS 10 AS 'BEGIN RETURN QUERY SELECT * FROM crowd; END';
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT pg_temp.same('SELECT d.region, count(*), max(c.id) FROM reading r JOIN device d ON d.id = r.series JOIN pg_temp.crowded() c ON c.id = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT r.ts, d.region, c.payload FROM reading r JOIN device d ON d.id = r.series JOIN pg_temp.crowded() c ON c.id = r.kind WHERE r.ts < ''2024-01-01 02:00''');
CREATE FUNCTION pg_temp.handed_over(query text) RETURNS text LANGUAGE sql AS $$
    SELECT substring(pg_temp.analyzed(query)::text FROM '"Handed Over": "[^"]*"') $$;
SELECT pg_temp.handed_over('SELECT r.ts, d.region, c.payload FROM reading r JOIN device d ON d.id = r.series JOIN pg_temp.crowded() c ON c.id = r.kind');
-- Conditions on one small side within FILTER are evaluated once per small row. NULL is neither TRUE
-- nor FALSE.
SELECT pg_temp.same('SELECT r.kind, count(*) FILTER (WHERE d.region = ''eu''), sum(r.value) FILTER (WHERE NOT d.region = ''eu''), count(r.value) FILTER (WHERE d.region IS NULL OR r.series > 20) FROM reading r JOIN device d ON d.id = r.series WHERE r.value <> ''NaN'' GROUP BY 1');
SELECT pg_temp.same('SELECT d.region, count(*) FILTER (WHERE k.name LIKE ''%o'' AND d.host <> ''h3''), count(*) FILTER (WHERE upper(k.name) < ''P''), count(*) FILTER (WHERE k.weight > 1) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE NOT starts_with(d.region, ''e'')), count(*) FILTER (WHERE NOT ((d.region < ''f'') OR r.kind = 1)) FROM reading r JOIN device d ON d.id = r.series');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE d.region IN (''eu'', ''ap'', NULL)), count(*) FILTER (WHERE NOT d.region IN (''eu'', NULL)) FROM reading r JOIN device d ON d.id = r.series');
-- Errors only arise if a row of the small side joins a left row.
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE (k.name || ''x'')::int > 1) FROM reading r JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE (k.name || ''x'')::int > 1) FROM reading r JOIN kind k ON k.kind = r.kind WHERE r.kind = 9');
-- A condition that an earlier one has decided is not evaluated. A filter over one small side is
-- evaluated as a whole, and a part that may fail beside others is left to PostgreSQL.
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE k.name ~ ''^[0-9]+$'' AND k.name::int > 1) FROM reading r JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE r.series < 0 AND k.name::int > 1) FROM reading r JOIN kind k ON k.kind = r.kind WHERE r.series > 0');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE k.weight < 0 AND 1 / length(k.name) > 5 OR d.region = ''eu'') FROM reading r JOIN kind k ON k.kind = r.kind JOIN device d ON d.id = r.series');
-- Conditions over two small sides, volatile ones, and ones over both sides of the join are left to
-- PostgreSQL.
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE d.region < k.name) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE d.region = ''eu'' AND random() >= 0) FROM reading r JOIN device d ON d.id = r.series');
SELECT pg_temp.same('SELECT count(*) FILTER (WHERE d.host = r.host) FROM reading r JOIN device d ON d.id = r.series');
-- If all of PostgreSQL's own plans start workers, one of them takes over.
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
CREATE TABLE wide (series int, kind int2, n int);
INSERT INTO wide SELECT i % 60, i % 7, i FROM generate_series(1, 40000) i;
SELECT lanes.seal('wide');
ANALYZE wide;
EXPLAIN (COSTS OFF) SELECT d.region, k.name, count(*) FROM wide w JOIN device d ON d.id = w.series JOIN kind k ON k.kind = w.kind GROUP BY 1, 2;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(line, ' \(actual.*', '') FROM pg_temp.explained(query, 'Lanes|Handed|Gather') line $$;
SELECT pg_temp.plan('SELECT w.n, d.region, k.name, count(*) FROM wide w JOIN device d ON d.id = w.series JOIN kind k ON k.kind = w.kind GROUP BY 1, 2, 3');
SELECT count(*), sum(c), sum(n::bigint) FROM (SELECT w.n, d.region, k.name, count(*) AS c FROM wide w JOIN device d ON d.id = w.series JOIN kind k ON k.kind = w.kind GROUP BY 1, 2, 3 OFFSET 0) s;
SELECT pg_temp.plan('SELECT n, count(*), max(kind) FROM wide GROUP BY 1');
SET lanes.vectorize = off; SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(c), sum(n::bigint) FROM (SELECT w.n, d.region, k.name, count(*) AS c FROM wide w JOIN device d ON d.id = w.series JOIN kind k ON k.kind = w.kind GROUP BY 1, 2, 3 OFFSET 0) s;
RESET lanes.vectorize; RESET work_mem; RESET hash_mem_multiplier;
SET client_min_messages = warning;
-- Values of small sides are counted by codes: with NULLs, with duplicates, by group, in outer joins, with filters, over two sides, and for types other than text.
EXPLAIN (COSTS OFF) SELECT count(DISTINCT d.region), count(d.region) FROM reading r JOIN device d ON d.id = r.series;
SELECT pg_temp.same('SELECT count(DISTINCT d.region), count(d.region), count(d.host), count(*) FROM reading r JOIN device d ON d.id = r.series');
SELECT pg_temp.same('SELECT k.name, count(DISTINCT d.region), count(DISTINCT d.host || k.kind), count(DISTINCT r.host) FROM reading r JOIN device d ON d.id = r.series JOIN kind k ON k.kind = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT r.day, count(DISTINCT k.weight), count(DISTINCT upper(d.region)), count(k.name) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN kind k ON k.kind = r.kind GROUP BY 1');
SELECT pg_temp.same('SELECT count(DISTINCT d.host) FILTER (WHERE r.value > 50), count(DISTINCT d.host) FILTER (WHERE d.region = ''eu''), count(d.host) FILTER (WHERE d.region IS NULL) FROM reading r JOIN device d ON d.id = r.series');
SELECT pg_temp.same('SELECT count(DISTINCT d.region) FROM reading r JOIN empty d ON d.id = r.series');
SELECT pg_temp.same('SELECT r.kind, count(DISTINCT c.payload) FROM reading r JOIN crowd c ON c.id = r.series GROUP BY 1 HAVING count(DISTINCT c.payload) > 100');
-- A filter keeps rows from an evaluation that would fail.
SELECT pg_temp.same('SELECT count(DISTINCT (100 / (d.id - 7))::text) FILTER (WHERE d.id <> 7) FROM reading r JOIN device d ON d.id = r.series');
-- PostgreSQL counts values of a type without a hash.
SELECT pg_temp.same('SELECT count(DISTINCT d.id::text::bit(6)) FROM reading r JOIN device d ON d.id = r.series WHERE d.id IN (1, 10, 11)');
DROP SCHEMA star_join CASCADE;

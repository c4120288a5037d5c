-- requires: icu
-- Collations in which other bytes are equal.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA ignoring_case; SET search_path = ignoring_case;
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

-- Groups and conditions.
CREATE TABLE c (plain text, folded text COLLATE any_case, i int);
INSERT INTO c VALUES ('a', 'a', 1), ('A', 'A', 2), ('b ', 'b', 3), ('b', 'B', 4);
SET lanes.vectorize = require;
SELECT min(plain COLLATE "C"), count(*) FROM c GROUP BY plain COLLATE any_case ORDER BY 1;
SELECT count(*) FROM c GROUP BY folded;
SELECT count(*) FROM c WHERE folded = 'A';
SELECT count(*) FROM c WHERE plain = 'A' COLLATE any_case;
SELECT count(*) FROM c WHERE folded IN ('A', 'x');
SELECT count(*) FROM c WHERE folded <> ALL (ARRAY['B']);
RESET lanes.vectorize;

CREATE TABLE reading (ts timestamptz, series int, host text, kind int2, value float8) WITH (order_by = 'series, ts');
INSERT INTO reading SELECT timestamptz '2024-01-01' + i * interval '10 s', s, 'h' || s % 7, s % 3, i % 11
    FROM generate_series(1, 40) s, generate_series(1, 60) i;
SELECT lanes.seal('reading');
CREATE TABLE reading_heap USING heap AS SELECT * FROM reading;
CREATE TABLE device (id int, host text) USING heap;
INSERT INTO device SELECT i, 'h' || i % 12 FROM generate_series(1, 36) i;
CREATE TABLE owner (host text, person text) USING heap;
INSERT INTO owner SELECT 'H' || i % 8, 'p' || i % 4 FROM generate_series(1, 14) i;
CREATE TABLE caseless (ts timestamptz, host text COLLATE any_case, v int) USING heap;
INSERT INTO caseless SELECT ts, upper(host), series FROM reading WHERE series % 3 = 0;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'reading';

-- The outer level of nested aggregation has another equality than the level below.
SELECT pg_temp.same('SELECT lower(min(host COLLATE "C")), sum(n) FROM (SELECT CASE WHEN kind = 1 THEN upper(host) ELSE host END AS host, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY host COLLATE any_case');
SELECT pg_temp.same('SELECT host COLLATE any_case, sum(n) FROM (SELECT host, series, count(*) AS n FROM reading GROUP BY 1, 2) s GROUP BY 1');

-- A key of a join.
SET join_collapse_limit = 1;
SELECT pg_temp.same('SELECT o.person, count(*) FROM reading r LEFT JOIN device d ON d.id = r.series LEFT JOIN owner o ON upper(o.host) COLLATE any_case = d.host COLLATE any_case GROUP BY 1');

-- A key of a join by time cannot use codes.
SELECT count(b.v), sum(b.v) FROM reading t LEFT JOIN caseless b ON b.host = t.host AND lanes.asof(b.ts <= t.ts);
SELECT count(b.v), sum(b.v) FROM reading_heap t LEFT JOIN caseless b ON b.host = t.host AND lanes.asof(b.ts <= t.ts);

-- Labels.
CREATE TABLE series (labels jsonb);
INSERT INTO series SELECT jsonb_build_object('job', (ARRAY['a', 'A', 'b'])[i % 3 + 1]) FROM generate_series(1, 30) i;
SELECT count(*) FROM series WHERE labels->>'job' = 'A' COLLATE any_case;
SELECT count(*) FROM series WHERE labels->>'job' <> 'A' COLLATE any_case;

-- Distinct values of a small side are counted as their collation compares them, and operands of UNION are distinct so.
CREATE TABLE spelling (id int, word text COLLATE any_case) USING heap;
INSERT INTO spelling SELECT i, (ARRAY['One', 'one', 'ONE', 'two'])[i % 4 + 1] FROM generate_series(1, 36) i;
SELECT pg_temp.same('SELECT count(DISTINCT s.word), count(DISTINCT s.word COLLATE "C"), count(s.word) FROM reading r JOIN spelling s ON s.id = r.series');
CREATE TABLE word AS SELECT word, id FROM spelling, generate_series(1, 10);
ANALYZE word;
SELECT count(*) AS any_case FROM (SELECT word FROM word UNION SELECT word FROM word) u;
SELECT count(*) AS c FROM (SELECT word COLLATE "C" FROM word UNION SELECT word COLLATE "C" FROM word) u;

SET client_min_messages = warning;
DROP SCHEMA ignoring_case CASCADE;

-- Columns of uuid, and join keys that are uuids or floats: plans, and answers compared with those
-- without vectors and on heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA by_uuid; SET search_path = by_uuid;
-- Hosts 10 to 19 differ only in their last bytes, which zones do not contain; the others differ in
-- their first ones, above and below the sign bit.
CREATE FUNCTION host(i int) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(CASE WHEN i BETWEEN 10 AND 19 THEN 10 ELSE i END::bigint * 40000000), 8, '0') || '-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid $$;
CREATE DOMAIN host_id AS uuid;
CREATE TABLE cpu (ts timestamptz, host uuid, of_domain host_id, small real, usage float8) WITH (order_by = 'host, ts');
INSERT INTO cpu SELECT timestamptz '2024-01-01' + i * interval '10 s', CASE WHEN h < 60 THEN host(h) END, host(h % 7),
        CASE WHEN i % 13 = 0 THEN 'NaN' WHEN i % 7 = 0 THEN '-0' ELSE (i % 40) / 8.0 END,
        CASE WHEN i % 17 = 0 THEN float8 'NaN' WHEN i % 11 = 0 THEN NULL WHEN i % 5 = 0 THEN 0 ELSE (h * i) % 97 / 8.0 END
    FROM generate_series(1, 61) h, generate_series(1, 2400) i;
SELECT lanes.seal('cpu');
DELETE FROM cpu WHERE ts > '2024-01-01 03:00' AND usage BETWEEN 3 AND 4;
-- Open rows beside the sealed ones.
INSERT INTO cpu SELECT ts + interval '1 day', host, of_domain, small, usage FROM cpu WHERE ts < '2024-01-01 00:05';
CREATE TABLE cpu_heap USING heap AS SELECT * FROM cpu;
CREATE TABLE tags (host uuid, of_domain host_id, name text, region text, number int, factor float8, small real) USING heap;
INSERT INTO tags SELECT host(i), host(i % 3), 'host_' || i, (ARRAY['eu', 'us', NULL])[i % 3 + 1], i, i / 8.0, i / 8.0 FROM generate_series(1, 70) i;
INSERT INTO tags VALUES (NULL, NULL, 'none', 'none', 0, 'NaN', 'NaN'), (host(12), NULL, 'again', 'again', 12, '-0', '0'), (host(13), host(2), NULL, 'eu', 13, NULL, '-0');
CREATE TABLE lanes_tags AS SELECT * FROM tags;
CREATE TABLE lanes_tags_heap USING heap AS SELECT * FROM tags;
CREATE TABLE empty (host uuid) USING heap;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'cpu|lanes_tags';
-- Returns whether a query skips segments, and whether it reads few rows.
CREATE FUNCTION pg_temp.read(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE node json := pg_temp.analyzed(query) -> 'Plan';
BEGIN
    WHILE node ->> 'Node Type' <> 'Custom Scan' LOOP node := node -> 'Plans' -> 0; END LOOP;
    RETURN CASE WHEN (node ->> 'Segments Skipped')::int > 0 THEN 'some' ELSE 'no' END || ' segments skipped, ' || CASE WHEN (node ->> 'Rows Scanned')::int < 15000 THEN 'few' ELSE 'many' END || ' rows scanned';
END $$;

-- Plans.
EXPLAIN (COSTS OFF) SELECT ts, usage FROM cpu WHERE host = '0bebc200-0000-4000-8000-000000000005' AND ts < '2024-01-01 01:00';
EXPLAIN (COSTS OFF) SELECT date_trunc('minute', ts), avg(usage) FROM cpu WHERE host = ANY ('{0bebc200-0000-4000-8000-000000000005,17d78400-0000-4000-8000-000000000010}') GROUP BY 1;
EXPLAIN (COSTS OFF) SELECT t.region, avg(c.usage) FROM cpu c JOIN tags t ON t.host = c.host GROUP BY t.region;
EXPLAIN (COSTS OFF) SELECT host, count(*) FROM cpu WHERE host < '17d78400-0000-4000-8000-000000000010' GROUP BY host;
EXPLAIN (COSTS OFF) SELECT DISTINCT of_domain FROM cpu;

-- Segments and vectors without the value are not read, for every kind of condition.
SELECT pg_temp.read(format('SELECT usage FROM cpu WHERE host = %L', host(5)));
SELECT pg_temp.read(format('SELECT sum(usage) FROM cpu WHERE host IN (%L, %L)', host(5), host(7)));
SELECT pg_temp.read(format('SELECT sum(usage) FROM cpu WHERE host > %L', host(57)));
SELECT pg_temp.read(format('SELECT sum(usage) FROM cpu WHERE host <= %L', host(2)));
SELECT pg_temp.read(format('SELECT sum(usage) FROM cpu WHERE %L >= host AND ts > ''2024-01-01 01:00''', host(2)));
SELECT pg_temp.read(format('SELECT sum(usage) FROM cpu WHERE host = %L OR host = %L', host(5), host(6)));
SELECT pg_temp.read('SELECT c.usage FROM cpu c JOIN tags t ON t.host = c.host WHERE t.name = ''host_5''');
SELECT pg_temp.read('SELECT date_trunc(''hour'', ts), avg(usage) FROM cpu c JOIN tags t ON t.host = c.host WHERE t.name = ''host_5'' GROUP BY 1');
SELECT pg_temp.read('SELECT usage FROM cpu WHERE host IN (SELECT host FROM tags WHERE number = 50)');
-- Values with equal first bytes are distinguished by comparing them completely.
SELECT host, count(*) FROM cpu WHERE host BETWEEN host(11) AND host(13) GROUP BY host ORDER BY host;
SELECT pg_temp.read(format('SELECT usage FROM cpu WHERE host = %L', '17d78400-0000-4000-8000-000000000099'));
SET lanes.zone_maps = off;
SELECT pg_temp.same(format('SELECT * FROM cpu WHERE host = %L', host(5)));
RESET lanes.zone_maps;

-- Conditions.
SELECT q, pg_temp.same('SELECT * FROM cpu WHERE ' || q) FROM (VALUES
    (1, format('host = %L', host(3))), (2, format('host <> %L', host(3))), (3, format('host < %L', host(12))), (4, format('host <= %L', host(12))),
    (5, format('host > %L', host(12))), (6, format('%L <= host', host(12))), (7, format('%L > host', host(12))), (8, format('host = %L', host(75))),
    (9, format('host IN (%L, %L, %L)', host(3), host(17), host(80))), (10, format('host NOT IN (%L, %L)', host(3), host(17))),
    (11, format('host = ANY (ARRAY[%L, NULL]::uuid[])', host(3))), (12, format('host <> ALL (ARRAY[%L, NULL]::uuid[])', host(3))),
    (13, 'host = ANY (''{}''::uuid[])'), (14, 'host <> ALL (''{}''::uuid[])'), (15, 'host = ANY (NULL::uuid[])'), (16, 'host = NULL'),
    (17, 'host IS NULL'), (18, 'host IS NOT NULL AND usage > 11'), (19, format('NOT (host = %L OR usage < 5)', host(3))), (20, format('(host > %L) IS UNKNOWN', host(3))),
    (21, format('of_domain = %L', host(3))), (22, format('of_domain IN (%L, %L)', host(3), host(4))), (23, format('host BETWEEN %L AND %L', host(55), host(99))),
    (24, format('host = ANY (ARRAY[NULL, NULL]::uuid[]) OR host = %L', host(4))), (25, format('host = of_domain AND host < %L', host(9))), (26, format('host < ALL (ARRAY[%L, %L]::uuid[])', host(3), host(2)))
) v (number, q) ORDER BY number;

-- The values of parameters are known late, and may be NULL.
SET lanes.vectorize = require;
PREPARE of_host (uuid) AS SELECT count(*), sum(small) FROM cpu WHERE host = $1 AND small < 4;
PREPARE of_hosts (uuid[]) AS SELECT count(*), max(ts) FROM cpu WHERE host = ANY ($1);
SET plan_cache_mode = force_generic_plan;
EXECUTE of_host (host(14)); EXECUTE of_host (host(99)); EXECUTE of_host (NULL);
EXECUTE of_hosts (ARRAY[host(14), host(2)]); EXECUTE of_hosts ('{NULL}'); EXECUTE of_hosts (NULL);
SET plan_cache_mode = force_custom_plan;
EXECUTE of_host (host(14)); EXECUTE of_host (NULL); EXECUTE of_hosts (ARRAY[host(14), host(2)]);
RESET plan_cache_mode;
SELECT t.region, count(*), max(c.ts) FROM cpu c JOIN tags t ON t.host = c.host GROUP BY t.region ORDER BY 1;
SELECT count(*) FROM (SELECT DISTINCT host FROM cpu) x;
RESET lanes.vectorize;

-- Groups.
SELECT pg_temp.same('SELECT host, count(*), count(usage), max(usage) FROM cpu GROUP BY host');
SELECT pg_temp.same('SELECT of_domain, host, date_trunc(''hour'', ts) AS hour, count(*) FROM cpu GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT DISTINCT host, small FROM cpu');
SELECT pg_temp.same('SELECT of_domain, count(*) FROM cpu GROUP BY of_domain HAVING count(*) > 21000');
SELECT pg_temp.same('SELECT DISTINCT ON (host) host, ts FROM cpu ORDER BY host, ts DESC');
SELECT pg_temp.same('SELECT count(DISTINCT host), count(host) FROM cpu');

-- Joins: one key and several, duplicates, NULLs, an empty side, a lanes table as the small side, a
-- domain.
SELECT pg_temp.same('SELECT c.*, t.* FROM cpu c JOIN tags t ON t.host = c.host WHERE c.usage > 11');
SELECT pg_temp.same('SELECT c.ts, t.name FROM cpu c JOIN tags t ON c.host = t.host AND t.small = c.small');
SELECT pg_temp.same('SELECT c.host, t.host AS other, count(*) FROM cpu c JOIN tags t ON c.host = t.host AND c.of_domain = t.of_domain GROUP BY 1, 2');
SELECT pg_temp.same('SELECT c.host, t.name FROM cpu c JOIN lanes_tags t ON t.host = c.host WHERE t.region = ''us'' AND c.usage < 1');
SELECT pg_temp.same('SELECT c.ts, e.host FROM cpu c JOIN empty e ON e.host = c.host');
SELECT pg_temp.same('SELECT count(*) FROM cpu c JOIN tags t ON t.host = c.of_domain');
SELECT pg_temp.same('SELECT t.region, avg(usage) FROM cpu c JOIN tags t ON t.host = c.host WHERE t.number < 20 GROUP BY 1');
SELECT pg_temp.same('SELECT * FROM cpu WHERE host IN (SELECT host FROM tags WHERE number IN (3, 12, 13))');
SELECT pg_temp.same('SELECT c.host, count(*) FROM cpu c WHERE EXISTS (SELECT FROM tags t WHERE t.host = c.host AND t.of_domain = c.of_domain) GROUP BY 1');
SELECT pg_temp.same('SELECT c.host, t.name, count(*) FROM cpu c LEFT JOIN tags t ON t.host = c.host AND t.number < 15 GROUP BY 1, 2');
SELECT pg_temp.same('SELECT * FROM cpu c WHERE NOT EXISTS (SELECT FROM tags t WHERE t.host = c.host AND t.number > 4)');
-- Joins that are left to PostgreSQL.
SELECT pg_temp.same('SELECT count(*) FROM cpu c JOIN tags t ON t.host::text = c.host::text AND t.number < 4');
SELECT pg_temp.same('SELECT count(*) FROM cpu c JOIN tags t ON t.host <= c.host AND t.number < 4');

-- Floats as keys: NaN equals NaN, -0 equals 0, and real is compared with double precision as double
-- precision.
SELECT pg_temp.same('SELECT c.host, c.usage, t.factor, t.number FROM cpu c JOIN tags t ON t.factor = c.usage');
SELECT pg_temp.same('SELECT c.small + 0 AS small, t.number, count(*), count(t.small) FROM cpu c JOIN tags t ON t.small = c.small GROUP BY 1, 2');
SELECT pg_temp.same('SELECT t.number, count(*) FROM cpu c JOIN tags t ON t.factor = c.small GROUP BY 1');
SELECT pg_temp.same('SELECT t.number, count(*) FROM cpu c JOIN tags t ON t.small = c.usage GROUP BY 1');
SELECT pg_temp.same('SELECT v.wide, count(*) FROM cpu c JOIN (VALUES (0.1::real, 0.1::float8), (0.2, 0.25)) v (narrow, wide) ON v.wide = c.small / 10::real GROUP BY 1');
SELECT pg_temp.same('SELECT v.wide, count(*) FROM cpu c JOIN (VALUES (0.1::real, 0.1::float8), (0.2, 0.25)) v (narrow, wide) ON v.narrow = c.small / 10::real GROUP BY 1');
SELECT pg_temp.same('SELECT count(*) FROM cpu c LEFT JOIN tags t ON t.factor = c.usage AND t.number > 3');
SELECT pg_temp.same('SELECT * FROM cpu WHERE usage IN (SELECT factor FROM tags)');
SELECT pg_temp.same('SELECT host, usage FROM cpu c WHERE NOT EXISTS (SELECT FROM tags t WHERE t.factor = c.usage)');

-- All rows sealed.
SELECT lanes.seal('cpu');
SELECT pg_temp.same(format('SELECT * FROM cpu WHERE host = %L', host(5)));
SELECT pg_temp.same('SELECT t.region, count(*) FROM cpu c JOIN tags t ON t.host = c.host GROUP BY 1');
-- The type of the column changes, and a uuid column is added.
ALTER TABLE cpu ADD COLUMN late uuid DEFAULT '17d78400-0000-4000-8000-000000000010'; ALTER TABLE cpu_heap ADD COLUMN late uuid DEFAULT '17d78400-0000-4000-8000-000000000010';
SELECT pg_temp.same(format('SELECT late, count(*) FROM cpu WHERE late IN (%L, %L) AND host > %L GROUP BY late', host(10), host(11), host(40)));
SELECT pg_temp.same(format('SELECT late, count(*) FROM cpu WHERE late > %L GROUP BY late', host(10)));
ALTER TABLE cpu ALTER host TYPE text; ALTER TABLE cpu_heap ALTER host TYPE text;
SELECT pg_temp.same(format('SELECT host, count(*) FROM cpu WHERE host = %L GROUP BY host', host(5)));
DROP SCHEMA by_uuid CASCADE;

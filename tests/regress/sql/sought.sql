-- Rows with a known order are found by binary search, by any column. The answers are compared with
-- heap.
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA sought; SET search_path = sought;
CREATE TABLE h (k int, wide int8, small int2, real float8, ts timestamptz, v int, note text) USING heap;
INSERT INTO h SELECT k * 3, k * 3000000000, k, k / 4.0, timestamptz '2026-01-01' + i * interval '1 minute', (abs(k) * 31 + i) % 101, 'n' || k % 5
  FROM generate_series(-100, 199) k, generate_series(1, CASE WHEN k % 50 = 0 THEN 3000 WHEN k % 7 = 0 THEN 1 ELSE 90 END) i;
CREATE TABLE by_int (LIKE h) USING lanes WITH (order_by = 'k, ts');
CREATE TABLE by_wide (LIKE h) USING lanes WITH (order_by = 'wide, ts');
CREATE TABLE by_real (LIKE h) USING lanes WITH (order_by = 'real, ts');
CREATE TABLE by_time (LIKE h) USING lanes WITH (order_by = 'ts, k');
-- A snapshot of autovacuum or of a background worker may be older than rows that were just stored, which then stay open.
CREATE FUNCTION alone() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  WHILE EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_xmin IS NOT NULL) LOOP
    PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
  END LOOP;
  RETURN true;
END $$;
-- The first 65,536 rows of a table are in small segments of one vector each, which this test is not
-- about.
INSERT INTO by_int SELECT 5000 FROM generate_series(1, 66000); INSERT INTO by_wide (k) SELECT k FROM by_int; INSERT INTO by_real (k) SELECT k FROM by_int; INSERT INTO by_time (k) SELECT k FROM by_int;
SELECT alone();
SELECT count(lanes.seal(name)) FROM unnest('{by_int,by_wide,by_real,by_time}'::regclass[]) name;
DELETE FROM by_int; DELETE FROM by_wide; DELETE FROM by_real; DELETE FROM by_time;
-- Each table has two parts, so that rows of two runs meet in a vector.
CREATE FUNCTION load(part text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY '{by_int,by_wide,by_real,by_time}'::text[] LOOP
    EXECUTE format('INSERT INTO %s SELECT * FROM h WHERE %s', name, part);
  END LOOP;
END $$;
SELECT load('v % 3 <> 0');
SELECT alone();
SELECT count(lanes.seal(name)) FROM unnest('{by_int,by_wide,by_real,by_time}'::regclass[]) name;
SELECT load('v % 3 = 0');
SELECT alone();
SELECT count(lanes.seal(name)) FROM unnest('{by_int,by_wide,by_real,by_time}'::regclass[]) name;
-- Vectors without the keys are skipped by search. In other vectors, rows before and after the keys
-- are not read.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(v) FROM by_int WHERE k IN (33, 36, 399);
CREATE TABLE keys (k int, wide int8, small int2, real float8, ts timestamptz, team text) USING heap;
INSERT INTO keys SELECT k, k::int8 * 1000000000, k / 3, k / 12.0, timestamptz '2026-01-01' + abs(k) * interval '1 hour', 't' || k % 3 FROM unnest('{-300,-299,0,33,36,150,399,597,598,90000}'::int[]) k;
INSERT INTO keys VALUES (NULL, NULL, NULL, NULL, NULL, 'none'), (33, 33000000000, 11, 2.75, NULL, 'twice');
CREATE TABLE quals AS
  SELECT format('%s %s %s', c, operator, constant) AS qual FROM unnest('{k,small,real}'::text[]) c, unnest('{<,<=,=,>=,>}'::text[]) operator, unnest('{33,34}'::text[]) constant
  UNION ALL SELECT format('k BETWEEN %s AND %s', a, b) FROM (VALUES (-300, -300), (30, 40), (34, 35), (500, 9999), (40, 30)) x(a, b)
  UNION ALL VALUES ('k IN (33, 34, 399)'), ('k = ANY (ARRAY[-300, 597, NULL])'), ('k IN (34, 35)'), ('k IN (33, 399) AND k > 100'), ('k IN (33, 399) AND k IN (0, 33)'), ('k IN (33, 150) AND k = 34'), ('k IN (33, 399) AND k = 36'), ('k IN (33, 36) AND k = 36'), ('k IN (30, 36) AND k IN (33, 39)'), ('k IN (31, 32, 33, 34, 35, 36, 37, 150)'), ('k = ANY (''{32,33,34,35,36,37}'') AND k > 33'), ('k IN (31, 32, 33, 35, 36, 37)'),
    ('wide IN (9000000000, 33000000000)'), ('small IN (11, 12, 133)'), ('real IN (2.75, 3, 33.25)'), ('ts = ''2026-01-01 01:00'''), ('ts > ''2026-01-02 12:00'' AND k < 0'), ('ts BETWEEN ''2026-01-01 00:10'' AND ''2026-01-01 00:12'''),
    ('k = 33 AND v = 50'), ('k IN (33, 150) AND note = ''n0'''), ('10 / (v + 1) > 3 AND k = 150'), ('k <> 33 AND k <= 36 AND k >= 30'), ('NOT k > 33 AND k > 0'), ('k = 33 OR k = 150'),
    ('k IN (SELECT k FROM keys)'), ('wide IN (SELECT wide FROM keys)'), ('small IN (SELECT small FROM keys)'), ('real IN (SELECT real FROM keys)'), ('ts IN (SELECT ts FROM keys)'), ('k NOT IN (SELECT x.k FROM keys x WHERE x.k IS NOT NULL)'),
    ('EXISTS (SELECT FROM keys WHERE keys.k = t.k AND team = ''t0'')'), ('NOT EXISTS (SELECT FROM keys WHERE keys.k = t.k)'), ('k = (SELECT max(x.k) FROM keys x WHERE x.k + 0 < 500)'), ('k IN (SELECT x.k FROM keys x WHERE x.k > 100) AND k < 200'), ('k = (SELECT x.k FROM keys x WHERE x.k + 0 = 1)');
-- Compares every query over every table, forwards and backwards, on segments in their stored form
-- and on decoded ones.
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
CREATE FUNCTION disagreements() RETURNS TABLE (source text, query text) LANGUAGE sql AS $$
    SELECT * FROM pg_temp.disagreements(ARRAY[
      'SELECT count(*) a, sum(v) b, min(k) c, max(ts) d, avg(v) e FROM %s t WHERE %s',
      'SELECT k a, count(*) b, sum(v) c, min(ts) d FROM %s t WHERE %s GROUP BY 1',
      'SELECT date_bin(''40 min'', ts, ''epoch'') a, count(*) b, max(v) c FROM %s t WHERE %s GROUP BY 1',
      'SELECT * FROM (SELECT k, ts, v FROM %s t WHERE %s ORDER BY ts DESC, k, v LIMIT 3) q',
      'SELECT * FROM (SELECT DISTINCT ON (k) k, ts, v FROM %s t WHERE %s ORDER BY k, ts DESC, v) q',
      'SELECT team, count(*), sum(v) FROM %s t JOIN keys ON keys.k = t.k WHERE %s GROUP BY 1',
      'SELECT t.k, t.ts, v, note, team FROM %s t JOIN keys ON keys.k = t.k AND v < 4 WHERE %s',
      'SELECT keys.k, team, count(v) FROM keys LEFT JOIN %s t ON t.k = keys.k AND v < 30 AND %s GROUP BY 1, 2',
      'SELECT k, wide, small, real, ts, v, note FROM %s t WHERE %s AND v %% 50 = 7'],
    ARRAY(SELECT regexp_replace(qual, '(?<![.\w''])(k|wide|small|real|ts)(?= (<|>|=|IN|BETWEEN|NOT))', 't.\1', 'g') FROM quals), '{by_int,by_wide,by_real,by_time}') $$;
SET lanes.decode_after = 1000000;
SELECT * FROM disagreements();
RESET lanes.decode_after;
-- Deleted rows, including the first and the last of a key, and added rows that are not sealed.
DELETE FROM h WHERE v % 10 = 3 OR k = 36 OR (k = 33 AND ts > '2026-01-01 01:00'); DELETE FROM by_int WHERE v % 10 = 3 OR k = 36 OR (k = 33 AND ts > '2026-01-01 01:00');
DELETE FROM by_wide WHERE v % 10 = 3 OR k = 36 OR (k = 33 AND ts > '2026-01-01 01:00');
DELETE FROM by_real WHERE v % 10 = 3 OR k = 36 OR (k = 33 AND ts > '2026-01-01 01:00'); DELETE FROM by_time WHERE v % 10 = 3 OR k = 36 OR (k = 33 AND ts > '2026-01-01 01:00');
SELECT load('v = 5');
INSERT INTO h SELECT * FROM h WHERE v = 5;
SELECT * FROM disagreements();
-- The values of parameters are known late, and may be NULL.
PREPARE of_key (int) AS SELECT count(*), sum(v) FROM by_int WHERE k = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE of_key (33); EXECUTE of_key (34); EXECUTE of_key (NULL);
RESET plan_cache_mode;
-- A cursor moves backwards over rows that were found by search.
BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k, ts, v FROM by_int WHERE k IN (33, 150) AND v < 3 ORDER BY k, ts, v; FETCH 3 FROM c; FETCH BACKWARD 2 FROM c; FETCH LAST FROM c; COMMIT;
DROP SCHEMA sought CASCADE;

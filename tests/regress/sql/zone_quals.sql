-- Quals that the zones of a vector or of a sealed segment satisfy are not evaluated for its rows.
-- The answers are compared with heap.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE h USING heap AS
  SELECT '2026-01-01'::timestamptz + i * interval '1 s' AS ts, i AS n, (i / 2048)::int2 AS vector, CASE WHEN i / 2048 <> 1 OR i % 5 <> 0 THEN i END AS gap,
    CASE WHEN i % 2048 = 0 THEN 'NaN' ELSE i / 2.0 END::float8 AS x, CASE WHEN i % 7 < 6 THEN 'S' || i % 7 END AS s, i % 3 = 0 AS ok FROM generate_series(0, 9999) i;
CREATE TABLE l USING lanes AS TABLE h;
CREATE TABLE sealed USING lanes WITH (order_by = 'ts') AS TABLE h;
CREATE TABLE by_key USING lanes WITH (order_by = 's, vector, ts') AS TABLE h;
SELECT lanes.seal('sealed'), lanes.seal('by_key');
-- Values at the ends of vectors and beside them, of columns that are constant within vectors, that
-- have NULLs, and of floats.
CREATE TABLE quals AS
  SELECT format('%s %s %s', c, operator, constant) AS qual FROM unnest('{n,gap,x}'::text[]) c, unnest('{<,<=,=,<>,>=,>}'::text[]) operator, unnest('{0,2047,2048,8192,9999}'::text[]) constant
  UNION ALL SELECT format('%s %s vector', constant, operator) FROM unnest('{<,<=,=,<>,>=,>}'::text[]) operator, unnest('{1,4}'::text[]) constant
  UNION ALL VALUES ('ts >= ''2026-01-01 00:30'' AND ts < ''2026-01-01 02:00'''), ('ts BETWEEN ''2026-01-01'' AND ''2026-01-02'''), ('ts < ''infinity'''), ('ts > NULL'),
    ('ts >= ''2026-01-01 00:30'' AND s = ''S3'''), ('n >= 0 AND gap < 4000 AND ok'), ('n < 2048 OR n > 7000'), ('NOT n < 2048'), ('n >= 0 AND 10 / (n + 1) < 5'), ('x < 6000 AND vector > 1'),
    ('n::int8 >= 2048 AND gap >= 1'), ('n > 0 AND n > 1 AND n > 2 AND n > 3'), ('n IN (5, 3000) OR vector = 3'), ('(n > 100 AND vector <> 2)'),
    ('x <> ''NaN'' OR n % 4096 = 0'), ('NOT (x = ''NaN'' AND n > 3000)'), ('gap < 100000 OR n % 2 = 0'), ('gap >= 4096 OR gap IS NULL'), ('n >= 0 OR 10 / n > 5'), ('n < 4096 OR n > 8000'), ('ts < ''2026-01-01 00:10'' OR ts > ''2026-01-01 02:30'''), ('vector = 2 OR ok');
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
CREATE FUNCTION disagreements() RETURNS TABLE (source text, query text) LANGUAGE sql AS $$
    SELECT * FROM pg_temp.disagreements(ARRAY[
      'SELECT count(*) a, count(gap) b, sum(n) c, min(gap) d, max(x) e, avg(n) f, bool_or(ok) g FROM %s WHERE %s',
      'SELECT count(*) FROM %s WHERE %s',
      'SELECT date_bin(''40 min'', ts, ''epoch'') a, count(*) b, sum(n) c FROM %s WHERE %s GROUP BY 1',
      'SELECT s a, date_bin(''1 hour'', ts, ''epoch'') b, min(n) c FROM %s WHERE %s GROUP BY 1, 2',
      'SELECT * FROM (SELECT n, x, s FROM %s WHERE %s ORDER BY ts DESC, n LIMIT 3) q',
      'SELECT s a, vector b, max(n + 0) c, count(*) d, count(gap) e FROM %s WHERE %s GROUP BY 1, 2',
      'SELECT vector a, gap IS NULL b, count(*) FILTER (WHERE ts > ''2026-01-01 01:00'') c, count(DISTINCT n) d FROM %s WHERE %s GROUP BY 1, 2',
      'SELECT ts, gap FROM %s WHERE %s AND n %% 1000 = 7'],
    ARRAY(SELECT qual FROM quals), '{l,sealed,by_key}') $$;
SET lanes.decode_after = 1000000;
-- Sealed segments all of whose rows pass are not read if zones answer the rest. If a row does not
-- pass, the vectors are considered, and the times of one are decoded.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(n) FROM sealed WHERE ts >= '2026-01-01' AND n < 10000;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(n) FROM sealed WHERE ts > '2026-01-01';
-- NULLs pass no comparison, and a zone does not contain their places.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM sealed WHERE gap >= 0;
-- Times are decoded where zones do not answer: where a range starts or ends, and at the first row
-- of a bucket.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*) FROM sealed WHERE ts >= '2026-01-01 00:30' AND ts < '2026-01-01 02:00';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT date_bin('1 day', ts, 'epoch'), max(n) FROM sealed WHERE ts >= '2026-01-01 00:30' GROUP BY 1;
-- A qual that all rows of a vector pass is not evaluated. Two of the three columns are decoded of
-- each vector, and times where a row is found.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT ts FROM sealed WHERE ts >= '2026-01-01' AND s = 'S0' AND x = 1501.5;
SELECT * FROM disagreements();
-- The values of parameters are known late, and may be NULL.
PREPARE since (timestamptz) AS SELECT count(*), sum(n) FROM sealed WHERE ts >= $1;
EXECUTE since ('2026-01-01'); EXECUTE since ('2026-01-01 00:00:01'); EXECUTE since (NULL);
-- Repeats of equal values are grouped as they are stored, also with two keys. Neither column is
-- decoded, except where only some values are NULL.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT s, max(n + 0) FROM by_key GROUP BY s;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT vector, s, count(*) FROM by_key GROUP BY vector, s;
-- Deleted rows, and added ones.
DELETE FROM l WHERE n % 1500 = 0; DELETE FROM sealed WHERE n % 1500 = 0; DELETE FROM by_key WHERE n % 1500 = 0; DELETE FROM h WHERE n % 1500 = 0;
SELECT * FROM disagreements();
INSERT INTO h SELECT CASE WHEN i % 100 <> 0 THEN '2026-01-01'::timestamptz + i * interval '1 s' END, i, i / 2048, i, i, 'S9', true FROM generate_series(10000, 13000) i;
INSERT INTO l SELECT * FROM h WHERE n >= 10000; INSERT INTO sealed SELECT * FROM h WHERE n >= 10000; INSERT INTO by_key SELECT * FROM h WHERE n >= 10000;
SELECT * FROM disagreements();
SELECT lanes.seal('sealed');
SELECT * FROM disagreements();
-- A column that sealed rows have by its default.
ALTER TABLE h ADD COLUMN late int DEFAULT 5; ALTER TABLE l ADD COLUMN late int DEFAULT 5; ALTER TABLE sealed ADD COLUMN late int DEFAULT 5; ALTER TABLE by_key ADD COLUMN late int DEFAULT 5;
INSERT INTO quals VALUES ('late = 5'), ('late <> 5 OR n > 3'), ('late >= 5 AND n < 5000'), ('late IS NULL');
SELECT * FROM disagreements();
SET lanes.zone_maps = off;
SELECT * FROM disagreements();
RESET lanes.zone_maps;
SET lanes.decode_after = 0;
SELECT * FROM disagreements();
DROP FUNCTION disagreements; DROP TABLE h, l, sealed, by_key, quals;

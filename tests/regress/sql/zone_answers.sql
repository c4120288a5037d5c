-- Whole vectors that their zone maps answer: the answers equal those of their rows, of the
-- row-by-row executor, and of heap.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE l (ts timestamptz, i2 int2, i4 int4, i8 int8, f4 real, f8 float8, ok bool, s text, zero float8, nan float8) USING lanes;
INSERT INTO l SELECT '2026-01-01'::timestamptz + i * interval '1 s', i % 1000 - 500, CASE WHEN i % 7 <> 0 THEN i END, 9223372036854775807 - i, i / 4.0::real, -i, i % 10 = 0,
  CASE WHEN i % 3 = 0 THEN 'x' END, CASE i % 2 WHEN 0 THEN '-0'::float8 ELSE 0 END, CASE WHEN i % 2000 = 0 THEN 'NaN'::float8 ELSE i END FROM generate_series(0, 9999) i;
CREATE TABLE h USING heap AS TABLE l;
CREATE VIEW asked AS SELECT 'SELECT count(*), count(i4), count(s), sum(i2), sum(i4), sum(i8), avg(i2), avg(i4), avg(i8), min(ts), max(ts), min(i4), max(i8), min(f4), max(f4), max(f8),
  bool_and(ok), bool_or(ok), count(*) FILTER (WHERE ok), count(ok), min(zero), max(zero), min(nan), max(nan) FROM '::text AS q;
CREATE FUNCTION answers(source text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; BEGIN FOR r IN EXECUTE (SELECT q FROM asked) || source LOOP RETURN NEXT r::text; END LOOP; END $$;
SELECT answers('h');
SET lanes.vectorize = require;
SELECT answers('l');
SET lanes.zone_maps = off;
SELECT answers('l');
RESET lanes.zone_maps;
SET lanes.vectorize = off;
SELECT answers('l');
RESET lanes.vectorize;
-- The vectors that zones answer: not the last one, which is not full; not the first one, whose
-- greatest f8 is a zero; none with rows that do not count.
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(*), sum(i4), max(f8), count(*) FILTER (WHERE ok) FROM l;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT min(i4) FROM l WHERE ts > '2026-01-01 01:00';
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(f8) FROM l;
SET lanes.zone_maps = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(i4) FROM l;
RESET lanes.zone_maps;
-- Rows that this snapshot does not see, and deleted rows.
BEGIN;
DELETE FROM l WHERE i4 = 5000; DELETE FROM h WHERE i4 = 5000;
UPDATE l SET i4 = 100000 WHERE i4 = 9; UPDATE h SET i4 = 100000 WHERE i4 = 9;
SELECT count(*) FROM (SELECT answers('h') EXCEPT SELECT answers('l')) x;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(i4) FROM l;
ROLLBACK;
SELECT count(*) FROM (SELECT answers('h') EXCEPT SELECT answers('l')) x;
-- A column that older rows have by its default, buckets that contain whole vectors, and a rescan.
ALTER TABLE l ADD COLUMN late int DEFAULT 5; ALTER TABLE h ADD COLUMN late int DEFAULT 5;
SELECT sum(late), min(late), count(late) FROM l;
SELECT date_trunc('day', ts), sum(i4), min(f4), count(ok) FROM l GROUP BY 1;
SELECT date_trunc('day', ts), sum(i4), min(f4), count(ok) FROM h GROUP BY 1;
SELECT x, (SELECT sum(i4) FROM l WHERE i8 > x) FROM (VALUES (0), (1)) v (x);
-- Sealed segments, whose stored zones answer counts, extremes and sums as long as all of their rows
-- are visible.
CREATE TABLE sealed USING lanes WITH (order_by = 'ts') AS TABLE l;
SELECT lanes.seal('sealed');
CREATE FUNCTION told(expressions text[]) RETURNS TABLE (expression text, agrees bool, segments text) LANGUAGE plpgsql AS $$
DECLARE heap text; lanes text; line text;
BEGIN
  FOREACH expression IN ARRAY expressions LOOP
    EXECUTE format('SELECT (%s)::text FROM h', expression) INTO heap;
    EXECUTE format('SELECT (%s)::text FROM sealed', expression) INTO lanes;
    agrees := heap IS NOT DISTINCT FROM lanes; segments := NULL;
    FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT %s FROM sealed', expression) LOOP
      segments := coalesce(substring(line FROM 'Segments Answered By Zone Maps: (\d+)'), segments);
    END LOOP;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT * FROM told('{count(*),count(i4),count(s),count(ok),min(ts),max(ts),min(i2),max(i4),min(i8),max(f4),min(f8),"ROW(count(*), max(i8), count(s))"}');
SELECT * FROM told('{sum(i2),sum(i4),sum(i8),avg(i2),avg(i8),bool_and(ok),bool_or(ok),count(*) FILTER (WHERE ok),"ROW(count(*), sum(i2), count(*) FILTER (WHERE ok))"}');
-- Floats have no stored sums. The bits of zeros and NaN are not stored. Rows have to be read if
-- some do not count.
SELECT * FROM told('{sum(f8),avg(f4),max(f8),min(zero),max(nan),count(s) FILTER (WHERE ok),sum(i4) FILTER (WHERE ok),count(DISTINCT i2),"ROW(count(*), sum(f8))"}');
-- An added column, open rows, deleted rows, and rows that are being deleted.
ALTER TABLE sealed ADD COLUMN later int DEFAULT 7; ALTER TABLE h ADD COLUMN later int DEFAULT 7;
SELECT * FROM told('{count(*),count(later),min(later),sum(later),sum(i4)}');
INSERT INTO sealed (i4, i8) VALUES (1000000, NULL), (NULL, -5); INSERT INTO h (i4, i8) VALUES (1000000, NULL), (NULL, -5);
SELECT * FROM told('{count(*),count(later),max(i4),min(i8),sum(i4),avg(i8),count(*) FILTER (WHERE ok),bool_or(ok)}');
BEGIN;
DELETE FROM sealed WHERE i2 = 3 AND i4 = 4503; DELETE FROM h WHERE i2 = 3 AND i4 = 4503;
SELECT * FROM told('{count(*),max(i8),sum(i4),avg(i8),count(*) FILTER (WHERE ok),bool_and(ok)}');
ROLLBACK;
SET lanes.zone_maps = off;
SELECT * FROM told('{count(*),max(i8),sum(i4),avg(i8),count(*) FILTER (WHERE ok),bool_and(ok)}');
RESET lanes.zone_maps;
DELETE FROM sealed WHERE i8 = 9223372036854775807; DELETE FROM h WHERE i8 = 9223372036854775807;
SELECT * FROM told('{count(*),max(i8),sum(i4),avg(i8),count(*) FILTER (WHERE ok),bool_and(ok)}');
-- Sealed again with the additions, and a column without any value.
ALTER TABLE sealed ADD COLUMN never int; ALTER TABLE h ADD COLUMN never int;
UPDATE sealed SET later = 8 WHERE i2 < 0; UPDATE h SET later = 8 WHERE i2 < 0;
SELECT lanes.seal('sealed');
SELECT * FROM told('{count(*),sum(later),avg(later),sum(never),count(never),sum(i4),bool_and(ok),count(*) FILTER (WHERE ok)}');
-- Times that only a bucket reads are decoded if a vector is not within the previous bucket: for two
-- of five here.
CREATE TABLE uneven USING lanes WITH (order_by = 'ts') AS
  SELECT '2026-01-01'::timestamptz + i * interval '1 s' + i * 7919 % 997 * interval '1 ms' AS ts, i AS n FROM generate_series(0, 9999) i;
SELECT lanes.seal('uneven');
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT date_bin('90 min', ts, 'epoch'), min(n), count(*) FROM uneven GROUP BY 1;
SELECT date_bin('90 min', ts, 'epoch'), min(n), count(*) FROM uneven GROUP BY 1 ORDER BY 1;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT date_bin('90 min', ts, 'epoch'), max(ts) FROM uneven GROUP BY 1;
CREATE FUNCTION bucketed() RETURNS TABLE (query text, agrees bool) LANGUAGE plpgsql AS $$
DECLARE vectorised text; plain text;
BEGIN
  FOREACH query IN ARRAY ARRAY[
    'SELECT date_bin(''90 min'', ts, ''epoch'') k, min(n) a, count(*) b FROM uneven GROUP BY 1',
    'SELECT date_bin(''90 min'', ts, ''epoch'') k, day d, min(n) a, count(*) b FROM uneven GROUP BY 1, 2',
    'SELECT date_bin(''1 day'', ts, ''epoch'') k, date_trunc(''week'', day) d, sum(n) a FROM uneven GROUP BY 1, 2',
    'SELECT lanes.time_bucket(''7 days'', day) k, sum(n) a FROM uneven GROUP BY 1',
    'SELECT date_bin(''90 min'', ts, ''epoch'') k, count(ts) a, avg(n) b FROM uneven GROUP BY 1',
    'SELECT date_bin(''90 min'', ts, ''epoch'') k, count(*) a FROM uneven WHERE n % 3 = 0 GROUP BY 1'] LOOP
    EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO vectorised;
    SET LOCAL lanes.vectorize = off;
    EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO plain;
    SET LOCAL lanes.vectorize = on;
    agrees := vectorised IS NOT DISTINCT FROM plain;
    RETURN NEXT;
  END LOOP;
END $$;
ALTER TABLE uneven ADD COLUMN day date;
UPDATE uneven SET day = ts::date + n / 3000;
SELECT lanes.seal('uneven');
SELECT * FROM bucketed();
-- Deleted rows, two runs in a segment, unknown times.
DELETE FROM uneven WHERE n % 5 = 1 AND n > 3000;
SELECT * FROM bucketed();
INSERT INTO uneven SELECT '2026-01-01'::timestamptz + i * interval '1 s', i, '2026-01-01'::date + i / 3000 FROM generate_series(10000, 14000) i;
SELECT lanes.seal('uneven');
SELECT * FROM bucketed();
INSERT INTO uneven SELECT CASE WHEN i % 900 <> 0 THEN '2026-01-01'::timestamptz + i * interval '1 s' END, i, NULL FROM generate_series(14001, 19000) i;
SELECT lanes.seal('uneven');
SELECT * FROM bucketed();
SET lanes.zone_maps = off;
SELECT * FROM bucketed();
RESET lanes.zone_maps;
DROP FUNCTION bucketed;
DROP FUNCTION answers, told; DROP VIEW asked; DROP TABLE l, h, sealed, uneven;

-- ANALYZE counts all rows of the blocks that it samples, and reads few of them: a block of sealed
-- rows contains thousands.
CREATE TABLE l (k int, n int, gap int, s text, wide text) USING lanes WITH (order_by = 'k, n', autovacuum_enabled = off);
INSERT INTO l SELECT i % 20, i, CASE WHEN i % 4 = 0 THEN i END, 'name ' || i % 50, md5(i::text) FROM generate_series(1, 200000) i;
SELECT lanes.seal('l');
SELECT pg_relation_size('l') / 8192 > 600 AS has_more_blocks_than_are_picked;
SET default_statistics_target = 1;
CREATE VIEW told AS SELECT attname, abs(null_frac - CASE attname WHEN 'gap' THEN 0.75 ELSE 0 END) < 0.15 AS nulls,
    CASE attname WHEN 'k' THEN n_distinct BETWEEN 18 AND 22 WHEN 's' THEN n_distinct BETWEEN 45 AND 55 ELSE n_distinct < -0.1 END AS distincts,
    (histogram_bounds::text::text[])[1]::int < 60000 AS from_start, (histogram_bounds::text::text[])[array_length(histogram_bounds::text::text[], 1)]::int > 140000 AS to_end
  FROM pg_stats WHERE tablename = 'l' AND attname <> 'wide' ORDER BY attname;
ANALYZE l;
SELECT reltuples BETWEEN 199000 AND 201000 AS counted FROM pg_class WHERE relname = 'l';
SELECT attname, nulls, distincts FROM told;
SELECT from_start, to_end FROM told WHERE attname IN ('n', 'gap');
-- Deleted rows, rows beside a hole, aborted rows, and open ones.
DELETE FROM l WHERE n <= 100000;
BEGIN; INSERT INTO l SELECT 1, i, i, 'lost', '' FROM generate_series(1, 5000) i; ROLLBACK;
INSERT INTO l SELECT 50, i, i, 'new', '' FROM generate_series(200001, 220000) i;
ANALYZE l;
SELECT reltuples BETWEEN 95000 AND 145000 AS counted FROM pg_class WHERE relname = 'l';
VACUUM l;
ANALYZE l;
SELECT reltuples BETWEEN 95000 AND 145000 AS counted FROM pg_class WHERE relname = 'l';
SELECT min(v::int) > 100000 AS only_live FROM pg_stats, unnest(histogram_bounds::text::text[]) v WHERE tablename = 'l' AND attname = 'n';
-- The statistics target of one column is greater than that of the others.
ALTER TABLE l ALTER n SET STATISTICS 10000;
ANALYZE l;
SELECT array_length(histogram_bounds::text::text[], 1) FROM pg_stats WHERE tablename = 'l' AND attname = 'n';
-- All rows of a small table are read, and an empty table has none.
CREATE TABLE few (n int) USING lanes;
ANALYZE few;
INSERT INTO few VALUES (1), (2), (2), (NULL);
ANALYZE few;
SELECT reltuples FROM pg_class WHERE relname = 'few';
SELECT null_frac, n_distinct FROM pg_stats WHERE tablename = 'few';
-- Rows that are appended to a small table count before the next ANALYZE, as pages of heap would.
CREATE TABLE grows (n int, v text) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO grows SELECT i, 'v' FROM generate_series(1, 150) i;
ANALYZE grows;
EXPLAIN SELECT FROM grows;
INSERT INTO grows SELECT i, 'v' FROM generate_series(1, 150) i;
EXPLAIN SELECT FROM grows;
DELETE FROM grows WHERE n = 1;
ANALYZE grows;
EXPLAIN SELECT FROM grows;
RESET default_statistics_target;
DROP VIEW told; DROP TABLE l, few, grows;

-- The view lanes.segments: the segments of tables, and the privileges to see them.
CREATE TABLE seen (host int, ts timestamptz, v float8, note text) USING lanes
    WITH (order_by = 'host, ts', hot = '1 day', autovacuum_enabled = off);
SELECT count(*) FROM lanes.segments WHERE relation = 'seen'::regclass;
INSERT INTO seen SELECT g % 10, '2026-01-01 00:00+00'::timestamptz + g * interval '1 s', g % 100 / 4.0, 'n' || g % 3
    FROM generate_series(0, 69999) g;
-- Open rows: one row per segment of the arena, with its memory and its times.
SET timezone = 'UTC';
SELECT state, part, first_row, rows, rows_live, runs > 0 AS has_runs, bytes_raw, bytes_encoded > 0 AS stored, encodings, column_bytes,
       min_time, max_time, block, object_key, in_cold_cache
    FROM lanes.segments WHERE relation = 'seen'::regclass ORDER BY first_row DESC LIMIT 1;
SELECT sum(rows), sum(rows_live), sum(bytes_raw) = 70000 * (4 + 8 + 8 + 3) AS raw, min(min_time), max(max_time) FROM lanes.segments WHERE relation = 'seen'::regclass;
-- Aborted rows do not count; deleted rows are not alive.
BEGIN;
INSERT INTO seen VALUES (1, '1999-01-01', 1, 'never');
ROLLBACK;
DELETE FROM seen WHERE host = 7;
SELECT sum(rows), sum(rows_live), min(min_time) FROM lanes.segments WHERE relation = 'seen'::regclass;
-- Sealed.
SELECT lanes.seal('seen');
SELECT state, count(*), sum(rows), sum(rows_live), sum(bytes_raw), sum(bytes_encoded) < 70000 * 2 AS is_small, min(min_time), max(max_time),
       count(DISTINCT part) AS parts, bool_and(block > 0) AS in_file, count(object_key) AS keys, count(in_cold_cache) AS cached
    FROM lanes.segments WHERE relation = 'seen'::regclass GROUP BY state;
SELECT DISTINCT encodings FROM lanes.segments WHERE relation = 'seen'::regclass;
SELECT bool_and(column_bytes ?& ARRAY['host', 'ts', 'v', 'note']) AS named,
       bool_and((SELECT sum(value::int) FROM jsonb_each_text(column_bytes)) <= bytes_encoded) AS within
    FROM lanes.segments WHERE relation = 'seen'::regclass;
DELETE FROM seen WHERE host = 8;
INSERT INTO seen VALUES (1, NULL, NULL, NULL);
SELECT state, sum(rows), sum(rows_live), min(min_time) FROM lanes.segments WHERE relation = 'seen'::regclass GROUP BY state ORDER BY state;
-- An added column and a dropped one.
ALTER TABLE seen ADD COLUMN later int DEFAULT 5;
ALTER TABLE seen DROP COLUMN v;
SELECT DISTINCT encodings - 'ts' AS encodings FROM lanes.segments WHERE relation = 'seen'::regclass AND state = 'sealed';
SELECT bytes_raw FROM lanes.segments WHERE relation = 'seen'::regclass AND state = 'open';
-- Segments in object storage are shown without reading them there.
CREATE TABLE objects (key text, image bytea) USING heap;
INSERT INTO objects SELECT key, lanes.segment_image(target, o.part, first_row) FROM lanes.offload_list(1) o;
SELECT bool_and(lanes.offload_commit(target, part)) FROM (SELECT DISTINCT target, part FROM lanes.offload_list(1)) o;
SELECT state, sum(rows), sum(rows_live), sum(bytes_raw) > 0 AS raw, sum(bytes_encoded) = (SELECT sum(length(image)) FROM objects) AS stored,
       min(min_time), max(max_time), count(block) AS in_file, bool_or(in_cold_cache) AS cached,
       count(*) = count(object_key) AS have_keys
    FROM lanes.segments WHERE relation = 'seen'::regclass GROUP BY state ORDER BY state;
SELECT count(*) FROM lanes.segments s JOIN objects o ON o.key = s.object_key WHERE s.encodings->>'note' IS NOT NULL;
-- Times without a time zone are in the session's zone. A table without a time column has no times.
CREATE TABLE local (t timestamp) USING lanes;
INSERT INTO local VALUES ('2026-07-01 12:00'), ('infinity');
SET timezone = 'Europe/Berlin';
SELECT min_time, max_time FROM lanes.segments WHERE relation = 'local'::regclass;
SET timezone = 'UTC';
CREATE TABLE timeless (i int) USING lanes;
INSERT INTO timeless VALUES (1);
SELECT state, rows, min_time, max_time FROM lanes.segments WHERE relation = 'timeless'::regclass;
CREATE TEMP TABLE own (i int, ts timestamptz) USING lanes;
INSERT INTO own VALUES (1, '2026-01-01');
SELECT state, rows, rows_resident, min_time FROM lanes.segments WHERE relation = 'own'::regclass;

-- The free space of a file: all blocks are counted once, and VACUUM finds those of sealed runs.
CREATE TABLE spacious (i int, t text) USING lanes WITH (autovacuum_enabled = off);
SELECT bytes, bytes_used, bytes_free FROM lanes.space WHERE relation = 'spacious'::regclass;
INSERT INTO spacious SELECT g, repeat('x', g % 50) FROM generate_series(1, 30000) g;
SELECT bytes = pg_relation_size('spacious') AS whole, bytes_used = bytes AS used FROM lanes.space WHERE relation = 'spacious'::regclass;
SELECT lanes.seal('spacious');
VACUUM spacious;
SELECT bytes = pg_relation_size('spacious') AS whole, bytes_used + bytes_free = bytes AS counted, bytes_free > bytes_used AS is_mostly_free,
       bytes_free_at_end <= bytes_free AS some_at_end FROM lanes.space WHERE relation = 'spacious'::regclass;
VACUUM FULL spacious;
SELECT bytes = pg_relation_size('spacious') AS whole, bytes_used = bytes AS used FROM lanes.space WHERE relation = 'spacious'::regclass;
SELECT * FROM lanes.stored_space('pg_class');
DROP TABLE spacious;

-- A role sees the segments of the tables that it may read, and times only of rows that row security
-- does not hide.
CREATE ROLE regress_lanes_reader;
CREATE ROLE regress_lanes_stranger;
GRANT SELECT ON seen TO regress_lanes_reader;
SET ROLE regress_lanes_stranger;
SELECT count(*) FROM lanes.segments;
SELECT count(*) FROM lanes.space;
SELECT count(*) FROM lanes.stored_space('seen');
SELECT count(*) FROM lanes.stored_segments('seen');
RESET ROLE;
SET ROLE regress_lanes_reader;
SELECT DISTINCT relation FROM lanes.space;
SELECT DISTINCT relation FROM lanes.segments;
SELECT count(*) > 0 AS seen FROM lanes.stored_segments('seen');
RESET ROLE;
ALTER TABLE seen ENABLE ROW LEVEL SECURITY;
SET ROLE regress_lanes_reader;
SELECT count(*) > 0 AS seen, count(min_time) + count(max_time) AS times FROM lanes.segments;
RESET ROLE;
SELECT count(*) > 0 AS seen, count(min_time) > 0 AS times FROM lanes.segments WHERE relation = 'seen'::regclass;
DROP OWNED BY regress_lanes_reader, regress_lanes_stranger;
DROP ROLE regress_lanes_reader, regress_lanes_stranger;

SELECT * FROM lanes.stored_segments('objects');
SELECT count(*) FROM lanes.stored_segments(0);
SELECT count(*) FROM lanes.stored_segments(NULL);
DROP TABLE seen, objects, local, timeless, own;

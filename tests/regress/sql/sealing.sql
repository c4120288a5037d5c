-- Sealing: sorted, deduplicated parts replace runs, and the visible rows stay the same.
CREATE TABLE sealed (series int, ts timestamptz, v float8, txt text) USING lanes
    WITH (order_by = 'series, ts', autovacuum_enabled = off);
INSERT INTO sealed
    SELECT g % 50, '2026-01-01 00:00+00'::timestamptz + (g / 50) * interval '10 s', (g % 97) / 4.0, 'x' || g % 7
    FROM generate_series(0, 99999) g;
INSERT INTO sealed VALUES (NULL, NULL, 'NaN', NULL), (1, '-infinity', '-0', ''), (1, 'infinity', 'Infinity', repeat('y', 300));
CREATE TEMP TABLE expected AS SELECT * FROM sealed;
CREATE FUNCTION differences() RETURNS bigint LANGUAGE sql AS $$
    SELECT count(*) FROM ((SELECT * FROM sealed EXCEPT ALL SELECT * FROM expected)
                          UNION ALL (SELECT * FROM expected EXCEPT ALL SELECT * FROM sealed)) d
$$;

SELECT lanes.seal('sealed');
SELECT DISTINCT state FROM lanes.arena_segments('sealed');
SELECT differences();
-- Sealing again finds nothing to do.
SELECT lanes.seal('sealed');
-- Rows are in the requested order, NULLs last.
SELECT count(*) FROM (SELECT series, ts, lag(series) OVER (ORDER BY ctid) AS s, lag(ts) OVER (ORDER BY ctid) AS t FROM sealed) r
    WHERE (s, t) > (series, ts);
SELECT series, ts, v, txt FROM sealed ORDER BY ctid DESC LIMIT 1;
-- Sealed rows take a small part of their previous space.
SELECT sum(bytes_stored) < 100000 * 3 AS is_small FROM lanes.arena_segments('sealed');

-- New rows, changed rows and deleted rows beside sealed ones.
INSERT INTO sealed SELECT 99, now(), 1, 'new' FROM generate_series(1, 10);
INSERT INTO expected SELECT * FROM sealed WHERE series = 99;
DELETE FROM sealed WHERE series = 5;
DELETE FROM expected WHERE series = 5;
UPDATE sealed SET v = -1, txt = NULL WHERE series = 6 AND ts < '2026-01-01 01:00+00';
UPDATE expected SET v = -1, txt = NULL WHERE series = 6 AND ts < '2026-01-01 01:00+00';
SELECT differences();
SELECT lanes.seal('sealed') > 0;
SELECT differences();
-- Row numbers have changed: deletes of old numbers do not apply to new rows.
VACUUM sealed;
SELECT differences();
SELECT count(*) FROM sealed WHERE series = 5;
DELETE FROM sealed WHERE series = 7;
DELETE FROM expected WHERE series = 7;
SELECT differences();
VACUUM sealed;
SELECT differences();

-- Segments that the index of their part excludes are not read.
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION scanned(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(line) FROM pg_temp.explained(query, 'Segments') line $$;
SELECT lanes.seal('sealed') > 0;
SELECT scanned('SELECT count(*) FROM sealed WHERE series = 3');
SELECT scanned('SELECT count(*) FROM sealed WHERE series = 1000');
-- Each segment is counted once, whichever process skips it.
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT scanned('SELECT count(*) FROM sealed WHERE series = 1000');
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
SELECT count(*) FROM sealed WHERE series = 3;

-- Rows that the same transaction changed are not sealed, nor rows that a snapshot does not see yet.
BEGIN;
UPDATE sealed SET v = 0 WHERE series = 8;
SELECT lanes.seal('sealed');
ROLLBACK;
SELECT differences();
BEGIN;
INSERT INTO sealed VALUES (200, now(), 2, 'mine');
SELECT lanes.seal('sealed');
ROLLBACK;
SELECT differences();

-- A cursor continues over its original rows. Positioned changes are refused after a sealing.
INSERT INTO sealed SELECT 300, '2026-03-01'::timestamptz + g * interval '-1 s', g, 'c' FROM generate_series(1, 5) g;
INSERT INTO expected SELECT * FROM sealed WHERE series = 300;
VACUUM sealed;
BEGIN;
DECLARE c CURSOR FOR SELECT v FROM sealed WHERE series = 300;
FETCH 2 FROM c;
SELECT lanes.seal('sealed') > 0;
FETCH 1 FROM c;
SELECT v FROM sealed WHERE series = 300;
SAVEPOINT s;
DELETE FROM sealed WHERE CURRENT OF c;
ROLLBACK TO s;
FETCH ALL FROM c;
CLOSE c;
DELETE FROM sealed WHERE series = 300 AND v = 2;
ROLLBACK;
SELECT differences();

-- dedup keeps the last of equal keys, and never considers NULLs equal.
CREATE TABLE once (k int, ts timestamp, v int) USING lanes WITH (order_by = 'k, ts', dedup = on, autovacuum_enabled = off);
INSERT INTO once VALUES (1, '2026-01-01', 1), (2, '2026-01-01', 2), (1, '2026-01-01', 3), (NULL, NULL, 4), (NULL, NULL, 5);
INSERT INTO once VALUES (1, '2026-01-01', 6), (2, '2026-01-02', 7);
SELECT lanes.seal('once');
SELECT * FROM once ORDER BY v;
INSERT INTO once VALUES (2, '2026-01-01', 8);
SELECT lanes.seal('once');
SELECT * FROM once ORDER BY v;

-- retain drops sealed rows once all rows of their part are older.
CREATE TABLE recent (ts timestamptz, v int) USING lanes WITH (retain = '1 day', autovacuum_enabled = off);
INSERT INTO recent SELECT now() - interval '2 days', g FROM generate_series(1, 1000) g;
SELECT lanes.seal('recent');
INSERT INTO recent SELECT now(), g FROM generate_series(1, 10) g;
VACUUM recent;
SELECT count(*), max(v) FROM recent;
ALTER TABLE recent RESET (retain);
SELECT reloptions FROM pg_class WHERE relname = 'recent';

-- Invalid settings.
CREATE TABLE bad (ts timestamptz) USING lanes WITH (retain = '-1 day');
CREATE TABLE bad (ts timestamptz) USING lanes WITH (retain = 'soon');
CREATE TABLE bad (ts timestamptz) USING lanes WITH (dedup = maybe);
-- Privileges for sealing, and tables that cannot be sealed.
CREATE TABLE heap_table (a int) USING heap;
SELECT lanes.seal('heap_table');
CREATE ROLE regress_lanes_sealer;
SET ROLE regress_lanes_sealer;
SELECT lanes.seal('sealed');
RESET ROLE;
DROP ROLE regress_lanes_sealer;

-- Columns added and dropped since; a rewrite; temporary tables.
ALTER TABLE once ADD COLUMN added int DEFAULT 42, DROP COLUMN v;
SELECT * FROM once ORDER BY k, ts;
INSERT INTO once VALUES (3, '2026-01-03', 43);
SELECT lanes.seal('once');
SELECT * FROM once ORDER BY k, ts;
VACUUM FULL once;
SELECT * FROM once ORDER BY k, ts;
CREATE TEMP TABLE passing (k int, v text) USING lanes WITH (order_by = 'k');
INSERT INTO passing SELECT 100 - g, g::text FROM generate_series(1, 100) g;
SELECT lanes.seal('pg_temp.passing');
SELECT min(k), max(k), count(DISTINCT v) FROM passing;
SELECT k FROM passing LIMIT 2;

-- Sealed rows are read from their images. The arena decodes lanes only after frequent reads; a read
-- of a few rows does not count.
CREATE TABLE looked_at (k int8, v float8, note text, flag bool) USING lanes WITH (order_by = 'k', autovacuum_enabled = off);
INSERT INTO looked_at SELECT g % 500, nullif(g % 97, 3) / 4.0, 'n' || g % 11, g % 5 = 0 FROM generate_series(1, 200000) g;
SELECT lanes.seal('looked_at');
CREATE TEMP VIEW lanes_of AS
    SELECT rows_resident > 0 AS decoded, count(*) FROM lanes.arena_segments('looked_at') WHERE segment >= 32 GROUP BY 1;
SET lanes.decode_after = 2;
SET max_parallel_workers_per_gather = 0;
SELECT scanned('SELECT count(*), sum(v) FROM looked_at');
SELECT count(*), sum(v), min(note), max(note), count(*) FILTER (WHERE flag) FROM looked_at;
SELECT sum(v) FROM looked_at WHERE k = 321;
SELECT sum(v) FROM looked_at WHERE k = 321;
SELECT * FROM lanes_of;
SELECT k, flag, count(*), sum(v) FROM looked_at WHERE k % 100 = 7 AND note > 'n8' GROUP BY 1, 2 ORDER BY 1, 2;
SELECT scanned('SELECT count(*), sum(v) FROM looked_at');
SELECT * FROM lanes_of;
SELECT count(*), sum(v), min(note), max(note), count(*) FILTER (WHERE flag) FROM looked_at;
UPDATE looked_at SET note = 'new' WHERE k = 321 AND v > 20;
SELECT note, count(*), sum(v) FROM looked_at WHERE k = 321 GROUP BY 1 ORDER BY 1;
RESET lanes.decode_after;
RESET max_parallel_workers_per_gather;

-- The rest of a part's images that does not fill a page is stored after the part's index. Images of
-- less than a page are all stored there.
CREATE TABLE packed (k int8, v int8) USING lanes WITH (order_by = 'k', autovacuum_enabled = off);
INSERT INTO packed SELECT g / 65536, CASE WHEN g >= 262144 THEN hashint8extended(g, 0) END FROM generate_series(0, 327679) g;
SELECT lanes.seal('packed');
SELECT bytes_encoded < 8192 AS is_small, count(*), count(DISTINCT block) AS blocks
    FROM lanes.segments WHERE relation = 'packed'::regclass GROUP BY 1 ORDER BY 1;
SELECT k, count(*), sum(v), count(v) FROM packed GROUP BY 1 ORDER BY 1;
-- Sealed again without the deleted rows, settled, and moved down the file, the images have the same
-- content.
DELETE FROM packed WHERE k = 2;
VACUUM packed;
VACUUM packed;
VACUUM packed;
SELECT k, count(*), sum(v), count(v) FROM packed GROUP BY 1 ORDER BY 1;

DROP VIEW lanes_of;
DROP TABLE sealed, once, recent, heap_table, passing, looked_at, packed;
DROP FUNCTION differences(), scanned(text);

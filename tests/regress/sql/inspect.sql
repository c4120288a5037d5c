-- lanes.segments, lanes.arena, lanes.version.
SELECT lanes.version() ~ '^lanes [0-9.]+ for PostgreSQL [0-9]+$' AS version;
SELECT bytes_total > 0 AS total, bytes_used BETWEEN 0 AND bytes_total AS used, bytes_largest_free <= bytes_total AS free,
       relations >= 0 AND segments >= 0 AND segment_evictions >= 0 AND relation_evictions >= 0 AND refusals >= 0 AS counts
FROM lanes.arena();
CREATE TABLE t (i int, v text) USING lanes;
SELECT * FROM lanes.arena_segments('t');
INSERT INTO t VALUES (1, 'one'), (2, 'two');
INSERT INTO t SELECT i, 'v' FROM generate_series(1, 3000) i;
SELECT count(*) FROM t;
SELECT segment, first_row, rows, rows_dead, rows_resident, runs, bytes_stored > 0 AS stored FROM lanes.arena_segments('t') ORDER BY segment;
BEGIN;
INSERT INTO t SELECT i, 'aborted' FROM generate_series(1, 100) i;
ROLLBACK;
VACUUM t;
SELECT sum(rows) AS rows, sum(rows_dead) AS dead FROM lanes.arena_segments('t');
TRUNCATE t;
SELECT * FROM lanes.arena_segments('t');
-- The argument and the privileges are checked.
CREATE TABLE h (i int) USING heap;
SELECT * FROM lanes.arena_segments('h');
SELECT * FROM lanes.arena_segments('no_such_table');
SELECT * FROM lanes.arena_segments(0);
SELECT * FROM lanes.arena_segments(NULL);
CREATE ROLE lanes_regress_nobody;
SET ROLE lanes_regress_nobody;
SELECT * FROM lanes.arena_segments('t');
RESET ROLE;
DROP ROLE lanes_regress_nobody;
DROP TABLE t, h;

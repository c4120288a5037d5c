-- Rows of megabytes, and rewrites: runs are limited by bytes, and rows that are copied one by one
-- form long runs again.
CREATE TABLE wide (a int, b text) USING lanes;
INSERT INTO wide SELECT i, repeat('x', 3000000) || i FROM generate_series(1, 20) i;
SELECT count(*), sum(length(b)), count(DISTINCT b) FROM wide;
SELECT sum(runs) BETWEEN 2 AND 10 AS cut_by_bytes FROM lanes.arena_segments('wide');
VACUUM FULL wide;
SELECT count(*), sum(length(b)), count(DISTINCT b) FROM wide;
UPDATE wide SET b = b || 'y' WHERE a % 2 = 0;
SELECT count(*), sum(length(b)), count(DISTINCT b) FROM wide;
DROP TABLE wide;
CREATE TABLE narrow (a int, b text) USING heap;
INSERT INTO narrow SELECT i, 'v' || i % 7 FROM generate_series(1, 3000) i;
ALTER TABLE narrow SET ACCESS METHOD lanes;
SELECT sum(runs) < 10 AS few_runs FROM lanes.arena_segments('narrow');
ALTER TABLE narrow ALTER a TYPE bigint;
SELECT sum(runs) < 10 AS few_runs FROM lanes.arena_segments('narrow');
CREATE TABLE copied USING lanes AS SELECT * FROM narrow;
SELECT sum(runs) < 10 AS few_runs FROM lanes.arena_segments('copied');
SELECT count(*), sum(a), count(DISTINCT b) FROM narrow;
SELECT count(*), sum(a), count(DISTINCT b) FROM copied;
-- Rows that a nested block could not write do not vanish with its exception: the statement fails,
-- or stores all of them.
CREATE FUNCTION peek(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM count(*) FROM copied;
        IF i % 100 = 7 THEN RAISE EXCEPTION 'undo'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    RETURN i;
END $$;
INSERT INTO narrow SELECT peek(i), 'peeked' FROM generate_series(1, 300) i;
SELECT count(*), sum(a) FROM narrow WHERE b = 'peeked';
DROP FUNCTION peek(int);
DROP TABLE narrow, copied;

-- lanes.vectorize = require, where planning nests and fails inside: what was found before is not forgotten.
CREATE TABLE l (i int, note numeric) USING lanes;
INSERT INTO l SELECT i, i FROM generate_series(1, 10) i;
CREATE FUNCTION fails(query text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN EXECUTE query; RETURN 0; EXCEPTION WHEN OTHERS THEN RETURN 1; END $$;
SET lanes.vectorize = require;
-- The first sub-select does not vectorise; a query that fails to plan is planned while the second is.
SELECT * FROM (SELECT sum(note) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT sum(note) FROM l') OFFSET 0) b;
SELECT * FROM (SELECT sum(note) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT i / 0 FROM l WHERE 1 / 0 = 1') OFFSET 0) b;
-- It is the inner query that does not, and nobody asks for it.
SELECT * FROM (SELECT sum(i) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT sum(note) FROM l') OFFSET 0) b;
SELECT fails('SELECT sum(i) FROM l'), fails('SELECT sum(note) FROM l'), sum(i) FROM l;
RESET lanes.vectorize;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT sum(note) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT 1 / 0') OFFSET 0) b;
-- A failure to plan within a cursor's leaves what the cursor is.
BEGIN;
EXPLAIN (COSTS OFF) DECLARE back CURSOR FOR SELECT i FROM l WHERE i = fails('SELECT 1 / 0');
SAVEPOINT s;
SELECT 1 / 0 FROM l;
ROLLBACK TO s;
EXPLAIN (COSTS OFF) DECLARE onward NO SCROLL CURSOR FOR SELECT i FROM l;
COMMIT;
DROP FUNCTION fails; DROP TABLE l;

-- UPDATE and DELETE in every form.
CREATE TABLE t (id int, v text, n int) USING lanes;
INSERT INTO t SELECT i, 'v' || i, i FROM generate_series(1, 10) i;
UPDATE t SET n = n * 10 WHERE id = 3;
UPDATE t SET v = NULL, n = n + 1 WHERE id IN (4, 5) RETURNING *;
UPDATE t SET (v, n) = ('row', id * 2) WHERE id = 6;
UPDATE t SET n = DEFAULT WHERE id = 7;
DELETE FROM t WHERE id = 8;
DELETE FROM t WHERE id = 9 RETURNING *;
DELETE FROM t WHERE id = 9;
SELECT * FROM t ORDER BY id;
UPDATE t SET id = id + 100;
SELECT * FROM t ORDER BY id;
UPDATE t SET id = id - 100 WHERE n IS NOT NULL;
UPDATE t SET n = 0 WHERE false;
SELECT count(*), sum(id) FROM t;

-- Repeated changes of one row, in one transaction and in several.
BEGIN;
UPDATE t SET n = 1 WHERE id = 1;
UPDATE t SET n = n + 1 WHERE id = 1;
UPDATE t SET n = n + 1 WHERE id = 1;
SELECT id, n FROM t WHERE id = 1;
DELETE FROM t WHERE id = 1;
SELECT id, n FROM t WHERE id = 1;
ROLLBACK;
SELECT id, n FROM t WHERE id = 1;
DO $$ BEGIN FOR i IN 1 .. 200 LOOP UPDATE t SET n = n + 1 WHERE id = 1; END LOOP; END $$;
SELECT id, n FROM t WHERE id = 1;
BEGIN;
INSERT INTO t VALUES (50, 'own', 0);
UPDATE t SET v = 'own, changed' WHERE id = 50;
DELETE FROM t WHERE id = 50;
INSERT INTO t VALUES (51, 'own', 0);
UPDATE t SET v = 'own, changed' WHERE id = 51;
COMMIT;
SELECT * FROM t WHERE id >= 50 AND id < 60 ORDER BY id;

-- A statement does not see its own changes (the Halloween problem), and changes no row twice.
CREATE TABLE source (id int, v text) USING lanes;
INSERT INTO source VALUES (1, 'a'), (1, 'b'), (2, 'c');
UPDATE t SET v = 'joined' FROM source WHERE source.id = t.id;
SELECT id, v FROM t WHERE v = 'joined' ORDER BY id;
DELETE FROM t USING source WHERE source.id = t.id;
SELECT count(*) FROM t WHERE id IN (1, 2);
UPDATE t SET n = n + (SELECT count(*) FROM t) WHERE n IS NOT NULL;
SELECT id, n FROM t ORDER BY id;
WITH u AS (UPDATE t SET n = -1 WHERE id = 3 RETURNING id, n) SELECT u.id, u.n, t.n AS before FROM u JOIN t USING (id);
WITH d AS (DELETE FROM t WHERE id = 3 RETURNING *), i AS (INSERT INTO t SELECT 33, v, n FROM d RETURNING id) SELECT d.id AS gone, i.id AS come FROM d, i;
SELECT id FROM t ORDER BY id;

-- A change of a row that the same command has already changed.
CREATE FUNCTION change_again() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET n = 99 WHERE id = 33; RETURN 1; END $$;
UPDATE t SET n = change_again() WHERE id = 33;
SELECT id, n FROM t WHERE id = 33;

-- Subqueries, self-joins, IN, EXISTS, whole-row references.
UPDATE t SET v = (SELECT string_agg(s.v, '+' ORDER BY s.v) FROM source s WHERE s.id = t.id % 3);
SELECT id, v FROM t ORDER BY id;
DELETE FROM t WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = t.id + 1);
SELECT id FROM t ORDER BY id;
DELETE FROM t WHERE t = (SELECT t2 FROM t t2 WHERE id = 33);
SELECT count(*) FROM t WHERE id = 33;

-- Changes across segments and vectors: most rows are deleted, some are updated, the rest stays.
CREATE TABLE many (id int, v text, f float8) USING lanes;
INSERT INTO many SELECT i, 'v' || i % 10, i FROM generate_series(1, 80000) i;
DELETE FROM many WHERE id % 2 = 0;
SELECT count(*), sum(id::int8), min(id), max(id) FROM many;
UPDATE many SET f = -f WHERE id % 5 = 0;
SELECT count(*), sum(f), count(*) FILTER (WHERE f < 0) FROM many;
UPDATE many SET v = 'all' || id % 3;
SELECT v, count(*), sum(f) FROM many GROUP BY v ORDER BY v;
DELETE FROM many WHERE id BETWEEN 20000 AND 60000;
SELECT count(*), sum(f) FROM many;
BEGIN;
DELETE FROM many;
SELECT count(*) FROM many;
INSERT INTO many VALUES (1, 'new', 1);
SELECT * FROM many;
ROLLBACK;
SELECT count(*), sum(f) FROM many;
DELETE FROM many;
SELECT count(*) FROM many;
INSERT INTO many VALUES (1, 'again', 1);
SELECT * FROM many;

-- A failing UPDATE or DELETE changes nothing.
CREATE TABLE kept (id int, v int CHECK (v < 100)) USING lanes;
INSERT INTO kept SELECT i, i FROM generate_series(1, 99) i;
UPDATE kept SET v = v + 50;
DELETE FROM kept WHERE 1 / (v - 50) > -100;
SELECT count(*), sum(v) FROM kept;

-- MERGE.
CREATE TABLE merged (id int, v int) USING lanes;
INSERT INTO merged VALUES (1, 1), (2, 2), (3, 3);
MERGE INTO merged m USING (VALUES (1, 10), (3, 30), (4, 40)) AS s (id, v) ON m.id = s.id
    WHEN MATCHED AND s.v > 20 THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = m.v + s.v
    WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v);
SELECT * FROM merged ORDER BY id;
MERGE INTO merged m USING (VALUES (1, 10), (1, 11)) AS s (id, v) ON m.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v;
SELECT * FROM merged ORDER BY id;

DROP TABLE t, source, many, kept, merged;
DROP FUNCTION change_again();

-- Cursors: every direction, held, and for positioned changes.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 5000) i;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, v FROM t ORDER BY id;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH PRIOR FROM c;
FETCH NEXT FROM c;
FETCH ABSOLUTE 2048 FROM c;
FETCH RELATIVE 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH ABSOLUTE -1 FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD 2 FROM c;
MOVE FORWARD ALL IN c;
MOVE BACKWARD ALL IN c;
FETCH 1 FROM c;
CLOSE c;

-- Without a sort the scan itself runs backwards. Both directions visit the same rows.
DECLARE c SCROLL CURSOR FOR SELECT id FROM t;
MOVE FORWARD ALL IN c;
MOVE BACKWARD ALL IN c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 2047 IN c;
FETCH 3 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH ABSOLUTE 5000 FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD 2 FROM c;
FETCH NEXT FROM c;
CLOSE c;

-- Backwards with a filter and over deleted rows.
DELETE FROM t WHERE id BETWEEN 2000 AND 4000;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id % 1000 = 0 OR id IN (1999, 4001);
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH ALL FROM c;
CLOSE c;
ROLLBACK;

-- A cursor sees the table as of its DECLARE.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t WHERE id > 4995 ORDER BY id;
INSERT INTO t VALUES (5001, 'new');
DELETE FROM t WHERE id = 4997;
UPDATE t SET v = 'changed', id = -id WHERE id = 4998;
FETCH ALL FROM c;
SELECT count(*) FROM t WHERE id > 4995 OR id < 0;
FETCH BACKWARD 2 FROM c;
ROLLBACK;

-- An insensitive scan in progress, while rows are added and deleted behind and ahead of it.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id % 1000 = 1;
FETCH 1 FROM c;
DELETE FROM t WHERE id % 1000 = 1;
INSERT INTO t SELECT 1001, 'again' FROM generate_series(1, 3000);
FETCH ALL FROM c;
COMMIT;
SELECT count(*), sum(id) FROM t;
DELETE FROM t WHERE v = 'again';

-- WITH HOLD outlives its transaction and later changes.
BEGIN;
DECLARE held SCROLL CURSOR WITH HOLD FOR SELECT id FROM t WHERE id > 4996 ORDER BY id;
FETCH 1 FROM held;
COMMIT;
DELETE FROM t WHERE id > 4996;
FETCH ALL FROM held;
FETCH BACKWARD 1 FROM held;
TRUNCATE t;
FETCH ABSOLUTE 1 FROM held;
CLOSE held;

-- WHERE CURRENT OF.
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 10) i;
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t FOR UPDATE;
FETCH 3 FROM c;
UPDATE t SET v = 'current' WHERE CURRENT OF c;
FETCH 1 FROM c;
DELETE FROM t WHERE CURRENT OF c;
DELETE FROM t WHERE CURRENT OF c;
FETCH 1 FROM c;
UPDATE t SET v = 'once' WHERE CURRENT OF c RETURNING *;
UPDATE t SET v = v || ' twice' WHERE CURRENT OF c RETURNING *;
COMMIT;
SELECT * FROM t ORDER BY id;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t;
FETCH 2 FROM c;
DELETE FROM t WHERE CURRENT OF c RETURNING id;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH 1 FROM c;
UPDATE t SET v = 'x' WHERE CURRENT OF c;
ROLLBACK;

-- A loop over a query whose body changes the table.
DO $$
DECLARE r record;
BEGIN
    FOR r IN SELECT id FROM t LOOP
        UPDATE t SET v = 'looped ' || r.id WHERE id = r.id;
        INSERT INTO t VALUES (r.id + 100, 'added');
    END LOOP;
END $$;
SELECT * FROM t ORDER BY id;

-- A savepoint under an open cursor.
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id;
FETCH 1 FROM c;
SAVEPOINT a;
DELETE FROM t;
FETCH 1 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
COMMIT;

-- Rewinding: the inner side of a nested loop, and a correlated subquery.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT a.id, b.id FROM t a JOIN t b ON b.id = a.id + 100 ORDER BY 1, 2;
SELECT a.id, (SELECT count(*) FROM t b WHERE b.id <= a.id) AS rank FROM t a ORDER BY 1;
RESET ALL;

-- LIMIT leaves a scan unfinished.
SELECT count(*) FROM (SELECT * FROM t LIMIT 3) s;
SELECT EXISTS (SELECT 1 FROM t WHERE id = 5);

DROP TABLE t;

-- SCROLL cursors are for WHERE CURRENT OF too, in both directions.
CREATE TABLE scrolled (id int, v text) USING lanes;
INSERT INTO scrolled SELECT i, 'v' || i FROM generate_series(1, 10) i;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM scrolled;
FETCH 5 FROM c;
FETCH BACKWARD 2 FROM c;
UPDATE scrolled SET v = 'third' WHERE CURRENT OF c RETURNING *;
FETCH NEXT FROM c;
DELETE FROM scrolled WHERE CURRENT OF c RETURNING *;
FETCH LAST FROM c;
UPDATE scrolled SET v = 'last' WHERE CURRENT OF c RETURNING *;
FETCH ABSOLUTE 3 FROM c;
UPDATE scrolled SET v = 'again' WHERE CURRENT OF c RETURNING *;
MOVE FORWARD ALL IN c;
SAVEPOINT a;
UPDATE scrolled SET v = 'none' WHERE CURRENT OF c;
ROLLBACK TO a;
DECLARE counted SCROLL CURSOR FOR SELECT v, count(*) FROM scrolled GROUP BY v;
FETCH counted;
UPDATE scrolled SET v = 'none' WHERE CURRENT OF counted;
ROLLBACK TO a;
COMMIT;
SELECT * FROM scrolled ORDER BY id;
DROP TABLE scrolled;

-- SELECT … FOR UPDATE and its weaker variants, in one session.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 5) i;
BEGIN;
SELECT * FROM t WHERE id <= 2 ORDER BY id FOR UPDATE;
SELECT * FROM t WHERE id = 3 FOR NO KEY UPDATE;
SELECT * FROM t WHERE id = 4 FOR SHARE;
SELECT * FROM t WHERE id = 5 FOR KEY SHARE;
SELECT count(*) FROM (SELECT 1 FROM t FOR UPDATE NOWAIT) s;
SELECT count(*) FROM (SELECT 1 FROM t FOR SHARE SKIP LOCKED) s;
-- The session that locked a row can change it.
UPDATE t SET v = 'locked, then changed' WHERE id = 1;
DELETE FROM t WHERE id = 4;
SELECT * FROM t ORDER BY id FOR UPDATE;
COMMIT;
SELECT * FROM t ORDER BY id;

-- A lock does not change the visible rows, and ends at commit or rollback.
BEGIN;
SELECT count(*) FROM (SELECT 1 FROM t FOR UPDATE) s;
ROLLBACK;
UPDATE t SET v = 'free' WHERE id = 2;
BEGIN;
SAVEPOINT a;
SELECT count(*) FROM (SELECT 1 FROM t FOR UPDATE) s;
ROLLBACK TO a;
UPDATE t SET v = 'after savepoint' WHERE id = 3;
COMMIT;
SELECT * FROM t ORDER BY id;

-- Joins, OF, LIMIT, ORDER BY, CTEs, subqueries, and a row changed in the same transaction.
CREATE TABLE h (id int PRIMARY KEY, w text) USING heap;
INSERT INTO h VALUES (1, 'one'), (2, 'two');
BEGIN;
SELECT t.id, h.w FROM t JOIN h USING (id) ORDER BY id FOR UPDATE;
SELECT t.id, h.w FROM t JOIN h USING (id) ORDER BY id FOR UPDATE OF h;
SELECT t.id, h.w FROM t JOIN h USING (id) ORDER BY id FOR SHARE OF t;
SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE;
WITH picked AS (SELECT id FROM t WHERE id > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE t SET v = 'picked' FROM picked WHERE t.id = picked.id RETURNING t.*;
INSERT INTO t VALUES (10, 'own');
SELECT * FROM t WHERE id = 10 FOR UPDATE;
UPDATE t SET v = 'own, changed' WHERE id = 10;
SELECT * FROM t WHERE id = 10 FOR UPDATE;
DELETE FROM t WHERE id = 10;
SELECT * FROM t WHERE id = 10 FOR UPDATE;
COMMIT;
SELECT count(*) FROM t GROUP BY id FOR UPDATE;
SELECT DISTINCT id FROM t FOR UPDATE;
LOCK TABLE t;
BEGIN;
LOCK TABLE t IN ACCESS EXCLUSIVE MODE;
SELECT count(*) FROM t;
COMMIT;
DROP TABLE t, h;

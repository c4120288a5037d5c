-- System columns and TID scans. The meaning of a position is internal to the table.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 5000) i;
SELECT count(DISTINCT ctid), count(*), count(DISTINCT tableoid), min(tableoid)::regclass FROM t;
SELECT count(*) FROM t WHERE xmax <> 0;
SELECT count(DISTINCT xmin::text) FROM t;
SELECT tableoid::regclass, id FROM t WHERE id = 7;

-- A row is found by its ctid.
SELECT count(*) FROM (SELECT ctid AS c, id FROM t WHERE id IN (1, 2, 2047, 2048, 2049, 4096, 5000)) s
    WHERE s.id = (SELECT t.id FROM t WHERE t.ctid = s.c);
SELECT ctid AS place FROM t WHERE id = 2500 \gset
SELECT * FROM t WHERE ctid = :'place';
SELECT * FROM t WHERE ctid = ANY (ARRAY[:'place', :'place']::tid[]);
SELECT * FROM t WHERE ctid IN (:'place', '(4000000000,1)', '(0,0)');
UPDATE t SET v = 'by ctid' WHERE ctid = :'place' RETURNING id, v;
SELECT * FROM t WHERE ctid = :'place';
DELETE FROM t WHERE ctid = (SELECT ctid FROM t WHERE id = 2500) RETURNING *;
SELECT count(*) FROM t WHERE ctid = (SELECT ctid FROM t WHERE id = 2500);

-- Positions without a row.
SELECT count(*) FROM t WHERE ctid = '(0,0)';
SELECT count(*) FROM t WHERE ctid = '(4294967295,65535)';
SELECT count(*) FROM t WHERE ctid = '(4294967294,1)';
SELECT count(*) FROM t WHERE ctid = '(0,65535)';
SELECT count(*) FROM t WHERE ctid = NULL;

-- Ranges of positions.
SELECT count(*) FROM t WHERE ctid >= '(0,0)';
SELECT count(*) FROM t WHERE ctid > '(4294967294,65535)';
SELECT count(*) FROM t WHERE ctid < '(0,1)';
SELECT (SELECT count(*) FROM t WHERE ctid < :'place') + (SELECT count(*) FROM t WHERE ctid > :'place') = count(*) AS complete FROM t;
SELECT count(*) FROM t WHERE ctid >= (SELECT min(ctid) FROM t) AND ctid <= (SELECT max(ctid) FROM t);
SELECT count(*) FROM t WHERE ctid > '(10,1)' AND ctid < '(5,1)';

-- The order of positions is the order of insertion here.
SELECT bool_and(id > previous) FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS previous FROM t WHERE id <> 2500) s;

-- Nested loops over positions, and row comparison.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*) FROM (SELECT ctid AS c FROM t WHERE id <= 20) s JOIN t ON t.ctid = s.c;
RESET ALL;

-- currtid and xmin in transactions.
BEGIN;
INSERT INTO t VALUES (6001, 'new');
SELECT xmin::text = pg_current_xact_id()::xid::text AS mine, xmax, cmin, cmax FROM t WHERE id = 6001;
INSERT INTO t VALUES (6002, 'newer');
SELECT id, cmin::text::int - (SELECT min(cmin::text::int) FROM t WHERE id >= 6001) AS step FROM t WHERE id >= 6001 ORDER BY id;
ROLLBACK;

-- RETURNING system columns.
INSERT INTO t VALUES (7001, 'returning') RETURNING tableoid::regclass, ctid IS NOT NULL AS has_place, xmax;
DELETE FROM t WHERE id = 7001 RETURNING tableoid::regclass, ctid IS NOT NULL AS has_place, xmax = pg_current_xact_id()::xid AS mine;
SELECT ctid AS place FROM t WHERE id = 1 \gset
UPDATE t SET v = 'moved' WHERE id = 1 RETURNING ctid <> :'place' AS moved;
DROP TABLE t;

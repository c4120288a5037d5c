-- Indexes: every access method and kind, before and after sealing in another order.
CREATE TABLE t (id int, grp int, name text, tags int[], place point, span int4range) USING lanes
    WITH (order_by = 'name');
INSERT INTO t SELECT i, i % 10, 'n' || (i * 7919 % 5000), ARRAY[i % 100, i % 77], point(i, -i), int4range(i, i + 3)
    FROM generate_series(1, 5000) i;
CREATE UNIQUE INDEX t_id ON t (id);
CREATE INDEX t_name ON t USING hash (name);
CREATE INDEX t_tags ON t USING gin (tags);
CREATE INDEX t_place ON t USING gist (place);
CREATE INDEX t_span ON t USING spgist (span);
CREATE INDEX t_part ON t (grp, id) WHERE grp = 3;
CREATE INDEX t_expression ON t ((id % 1000)) INCLUDE (name);
SET lanes.vectorize = off;
SET enable_seqscan = off;
CREATE FUNCTION look() RETURNS TABLE (by text, answer text) LANGUAGE sql AS $$
    SELECT 'btree', (SELECT name FROM t WHERE id = 4321)
    UNION ALL SELECT 'btree, ordered', (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM t ORDER BY id DESC LIMIT 5) x)
    UNION ALL SELECT 'hash', (SELECT string_agg(id::text, ' ') FROM t WHERE name = 'n77')
    UNION ALL SELECT 'gin', (SELECT count(*)::text FROM t WHERE tags @> ARRAY[5, 12])
    UNION ALL SELECT 'gist', (SELECT string_agg(id::text, ' ' ORDER BY id) FROM t WHERE place <@ box '(100,-98),(98,-100)')
    UNION ALL SELECT 'gist, nearest', (SELECT string_agg(id::text, ' ') FROM (SELECT id FROM t ORDER BY place <-> point(70.1, -70.1) LIMIT 3) x)
    UNION ALL SELECT 'spgist', (SELECT string_agg(id::text, ' ' ORDER BY id) FROM t WHERE span @> 50)
    UNION ALL SELECT 'partial', (SELECT count(*) || ' ' || sum(id) FROM t WHERE grp = 3 AND id < 500)
    UNION ALL SELECT 'expression', (SELECT string_agg(name, ' ' ORDER BY name) FROM t WHERE id % 1000 = 17)
    UNION ALL SELECT 'two indexes', (SELECT count(*)::text FROM t WHERE id < 100 AND tags && ARRAY[5])
$$;
EXPLAIN (COSTS OFF) SELECT name FROM t WHERE id = 4321;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t WHERE tags @> ARRAY[5, 12];
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY place <-> point(70.1, -70.1) LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id % 1000 FROM t WHERE id % 1000 = 17;
CREATE TEMP TABLE before AS SELECT * FROM look();
TABLE before;
SELECT lanes.seal('t');
SELECT * FROM look() EXCEPT TABLE before;

-- Rows come and go, and are sealed and merged again.
INSERT INTO t SELECT i, i % 10, 'm' || i, ARRAY[i], point(i, i), int4range(i, i + 1) FROM generate_series(5001, 6000) i;
DELETE FROM t WHERE id % 2 = 0 AND id > 4500;
UPDATE t SET name = 'updated' WHERE id = 4321;
SELECT lanes.seal('t');
INSERT INTO t SELECT i, i % 10, 'l' || i, ARRAY[i], point(i, i), int4range(i, i + 1) FROM generate_series(6001, 6100) i;
VACUUM t;
SELECT * FROM look() EXCEPT TABLE before;
SELECT count(*), sum(id) FROM t WHERE id > 0;
SELECT count(*) FROM t WHERE id IN (4502, 4503, 5999, 6000, 6050);
-- What an index says is what the table has.
CREATE FUNCTION missed() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE missed bigint;
BEGIN
    SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_indexonlyscan = off;
    CREATE TEMP TABLE by_table AS SELECT * FROM t;
    SET LOCAL enable_indexscan = on; SET LOCAL enable_seqscan = off;
    SELECT count(*) INTO missed FROM by_table b LEFT JOIN LATERAL (SELECT * FROM t WHERE t.id = b.id OFFSET 0) x ON true
        WHERE x.name IS DISTINCT FROM b.name OR x.tags IS DISTINCT FROM b.tags;
    DROP TABLE by_table;
    RETURN missed;
END $$;
SELECT missed();
REINDEX TABLE t;
SELECT missed();
VACUUM FULL t;
SELECT missed();
CREATE INDEX CONCURRENTLY t_later ON t (grp);
REINDEX INDEX CONCURRENTLY t_id;
SELECT missed(), (SELECT count(*) FROM t WHERE grp = 4);

-- Bitmaps that forget offsets.
SET work_mem = '64kB';
CREATE TABLE wide_bitmap (id int, v int) USING lanes;
INSERT INTO wide_bitmap SELECT i, i % 3 FROM generate_series(1, 400000) i;
CREATE INDEX ON wide_bitmap (v);
SET enable_indexscan = off;
SELECT count(*), sum(id) FROM wide_bitmap WHERE v = 1 AND id % 5 = 0;
RESET work_mem;
RESET enable_indexscan;
DROP TABLE wide_bitmap;

-- Uniqueness, also of rows that are sealed, in all its forms.
INSERT INTO t (id) VALUES (17);
ALTER TABLE t ADD CONSTRAINT later UNIQUE (id) DEFERRABLE INITIALLY DEFERRED;
BEGIN;
UPDATE t SET id = id + 1 WHERE id BETWEEN 10 AND 12;
ROLLBACK;
DROP INDEX t_id;
BEGIN;
UPDATE t SET id = CASE id WHEN 1 THEN 2 ELSE 1 END WHERE id IN (1, 2);
COMMIT;
BEGIN;
UPDATE t SET id = 3 WHERE id = 1;
COMMIT;
ALTER TABLE t ADD CONSTRAINT apart EXCLUDE USING gist (span WITH &&) WHERE (id > 6000);
UPDATE t SET span = int4range(6049, 6060) WHERE id = 6050;
CREATE TABLE nothing_twice (a int, UNIQUE NULLS NOT DISTINCT (a)) USING lanes;
INSERT INTO nothing_twice VALUES (NULL), (1);
INSERT INTO nothing_twice VALUES (NULL);
DROP TABLE nothing_twice;

-- INSERT … ON CONFLICT.
CREATE TABLE latest (device int PRIMARY KEY, seen int, v float8) USING lanes WITH (order_by = 'v');
INSERT INTO latest SELECT i, 1, -i FROM generate_series(1, 100) i;
SELECT lanes.seal('latest');
INSERT INTO latest SELECT i, 1, 0 FROM generate_series(95, 105) i ON CONFLICT DO NOTHING;
INSERT INTO latest VALUES (1, 1, 10), (101, 1, 10), (200, 1, 10)
    ON CONFLICT (device) DO UPDATE SET seen = latest.seen + 1, v = excluded.v WHERE latest.device <> 101 RETURNING *;
-- RETURNING tells inserted rows from updated ones by xmax.
INSERT INTO latest VALUES (3, 1, 1), (203, 1, 1) ON CONFLICT (device) DO UPDATE SET seen = 0 RETURNING device, xmax = 0 AS inserted, xmax = pg_current_xact_id()::xid AS locked;
UPDATE latest SET seen = 1 WHERE device = 203 RETURNING xmax;
INSERT INTO latest VALUES (1, 1, 1), (1, 1, 2) ON CONFLICT (device) DO UPDATE SET seen = 0;
INSERT INTO latest SELECT 7, 1, i FROM generate_series(1, 2000) i ON CONFLICT (device) DO NOTHING;
MERGE INTO latest USING (VALUES (2, 5), (300, 5)) AS n (device, v) ON latest.device = n.device
    WHEN MATCHED THEN UPDATE SET seen = seen + 1 WHEN NOT MATCHED THEN INSERT VALUES (n.device, 1, n.v);
SELECT count(*), sum(seen), sum(device) FROM latest;
SELECT * FROM latest WHERE device IN (1, 2, 7, 101, 200, 300) ORDER BY device;

-- One row, updated many times, stays one row.
DO $$ BEGIN FOR i IN 1..500 LOOP UPDATE latest SET seen = i WHERE device = 50; END LOOP; END $$;
SELECT * FROM latest WHERE device = 50;
VACUUM latest;
SELECT * FROM latest WHERE device = 50;

-- Foreign keys both ways.
CREATE TABLE reading (device int REFERENCES latest ON DELETE CASCADE ON UPDATE CASCADE, v int) USING lanes;
INSERT INTO reading SELECT i % 50 + 1, i FROM generate_series(1, 500) i;
INSERT INTO reading VALUES (5000, 1);
DELETE FROM latest WHERE device = 1;
UPDATE latest SET device = 1000 WHERE device = 2;
SELECT count(*), count(*) FILTER (WHERE device = 1000) FROM reading;
SELECT device FROM latest WHERE device = 3 FOR KEY SHARE;

-- COPY, and batches, keep indexes up to date. A failure leaves nothing.
COPY latest FROM STDIN;
2000	1	0.5
2001	1	0.5
\.
COPY latest FROM STDIN;
2002	1	0.5
2000	1	0.5
\.
SELECT device FROM latest WHERE device >= 2000 ORDER BY device;

-- Cursors and WHERE CURRENT OF.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM latest WHERE device > 10 ORDER BY device FOR UPDATE;
FETCH 2 FROM c;
UPDATE latest SET v = 777 WHERE CURRENT OF c;
COMMIT;
SELECT device FROM latest WHERE v = 777;

-- Temporary and unlogged tables, materialised views, partitions, other methods.
CREATE TEMP TABLE tt (id int PRIMARY KEY) USING lanes;
INSERT INTO tt SELECT generate_series(1, 100);
INSERT INTO tt VALUES (5);
SELECT count(*) FROM tt WHERE id = 5;
CREATE UNLOGGED TABLE tu (id int PRIMARY KEY) USING lanes;
INSERT INTO tu SELECT generate_series(1, 100);
SELECT count(*) FROM tu WHERE id = 5;
CREATE MATERIALIZED VIEW tm USING lanes AS SELECT device, v FROM latest;
CREATE UNIQUE INDEX ON tm (device);
UPDATE latest SET v = 1 WHERE device = 60;
REFRESH MATERIALIZED VIEW CONCURRENTLY tm;
SELECT * FROM tm WHERE device = 60;
CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE parted_lanes PARTITION OF parted FOR VALUES FROM (0) TO (100) USING lanes;
CREATE TABLE parted_heap PARTITION OF parted FOR VALUES FROM (100) TO (200) USING heap;
INSERT INTO parted SELECT i, i FROM generate_series(0, 199) i;
INSERT INTO parted VALUES (7, 0), (150, 0) ON CONFLICT (id) DO UPDATE SET v = -1;
SELECT * FROM parted WHERE v = -1 ORDER BY id;
CREATE TABLE changing (id int PRIMARY KEY, v text);
INSERT INTO changing SELECT i, 'v' || i FROM generate_series(1, 50) i;
ALTER TABLE changing SET ACCESS METHOD lanes;
SELECT * FROM changing WHERE id = 33;
ALTER TABLE changing ALTER COLUMN id TYPE bigint;
SELECT * FROM changing WHERE id = 34;
ALTER TABLE changing SET ACCESS METHOD heap;
SELECT * FROM changing WHERE id = 35;
TRUNCATE latest CASCADE;
SELECT count(*) FROM latest WHERE device = 50;
-- Sealing left rows out, so the table has fewer rows than entry numbers.
CREATE TABLE thinned (id int, v text) USING lanes WITH (order_by = 'v, id');
INSERT INTO thinned SELECT g, 'v' || g % 3 FROM generate_series(1, 3000) g;
DELETE FROM thinned WHERE id % 5 = 0;
CREATE INDEX ON thinned (v);
SELECT lanes.seal('thinned') > 0;
CREATE UNIQUE INDEX CONCURRENTLY thinned_id ON thinned (id);
CREATE INDEX CONCURRENTLY thinned_both ON thinned (v, id);
SELECT * FROM lanes.check('thinned');
SELECT count(*), count(DISTINCT id) FROM thinned WHERE v >= 'v';
DROP TABLE t, latest, thinned, reading, tt, tu, parted, changing CASCADE;
DROP TABLE before;
DROP FUNCTION look, missed;
RESET ALL;

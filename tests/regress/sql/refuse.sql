-- Operations that lanes tables do not support. Each is refused by name, with a hint, and leaves
-- nothing behind.
CREATE TABLE t (id int, v text) USING lanes;
INSERT INTO t VALUES (1, 'one'), (2, 'two');
CREATE INDEX ON t (id);
CREATE UNIQUE INDEX ON t (id);
CREATE INDEX ON t USING brin (id);
CREATE INDEX ON t USING hash (v);
CREATE INDEX CONCURRENTLY ON t (id);
CREATE INDEX IF NOT EXISTS named ON t (lower(v)) WHERE id > 0;
ALTER TABLE t ADD PRIMARY KEY (id);
ALTER TABLE t ADD UNIQUE (id);
ALTER TABLE t ADD CONSTRAINT x EXCLUDE USING btree (id WITH =);
CREATE TABLE keyed (id int PRIMARY KEY) USING lanes;
CREATE TABLE keyed (id int, UNIQUE (id)) USING lanes;
CREATE TABLE keyed (id int, EXCLUDE USING btree (id WITH =)) USING lanes;
CREATE TABLE heap_keyed (id int PRIMARY KEY, v text) USING heap;
CREATE TABLE keyed (LIKE heap_keyed INCLUDING ALL) USING lanes;
SELECT to_regclass('keyed') IS NULL AS nothing_left;
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;

-- A foreign key cannot refer to rows without a key.
CREATE TABLE referrer (id int REFERENCES t (id));
CREATE TABLE referrer (id int REFERENCES t);

-- A conflict target needs a key; DO UPDATE needs a target.
INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET v = excluded.v;
INSERT INTO t VALUES (1, 'again') ON CONFLICT DO UPDATE SET v = excluded.v;

-- CLUSTER requires an index.
CLUSTER t;
CLUSTER t USING named;

-- A table with indexes cannot become a lanes table; a table without indexes can.
ALTER TABLE heap_keyed SET ACCESS METHOD lanes;
INSERT INTO heap_keyed VALUES (1, 'still heap') ON CONFLICT (id) DO NOTHING;
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'heap_keyed';
ALTER TABLE heap_keyed DROP CONSTRAINT heap_keyed_pkey;
ALTER TABLE heap_keyed SET ACCESS METHOD lanes;
SELECT * FROM heap_keyed;

-- Partitions: an index of the parent would be an index of each partition.
CREATE TABLE parent (id int) PARTITION BY RANGE (id);
CREATE TABLE part_lanes PARTITION OF parent FOR VALUES FROM (0) TO (10) USING lanes;
CREATE TABLE part_heap PARTITION OF parent FOR VALUES FROM (10) TO (20) USING heap;
CREATE INDEX ON parent (id);
ALTER TABLE parent ADD PRIMARY KEY (id);
CREATE TABLE keyed_parent (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE keyed_part PARTITION OF keyed_parent FOR VALUES FROM (0) TO (10) USING lanes;
CREATE TABLE loose (id int NOT NULL) USING lanes;
ALTER TABLE keyed_parent ATTACH PARTITION loose FOR VALUES FROM (0) TO (10);
INSERT INTO parent VALUES (1), (11);
SELECT tableoid::regclass, id FROM parent ORDER BY id;

-- Materialized views are refreshed completely: CONCURRENTLY requires a key.
CREATE MATERIALIZED VIEW m USING lanes AS SELECT * FROM t;
CREATE UNIQUE INDEX ON m (id);
REFRESH MATERIALIZED VIEW CONCURRENTLY m;

-- Afterwards the table is unchanged.
SELECT * FROM t ORDER BY id;
UPDATE t SET v = 'changed' WHERE id = 1;
SELECT * FROM t ORDER BY id;
DROP MATERIALIZED VIEW m;
DROP TABLE t, heap_keyed, parent, keyed_parent, loose;

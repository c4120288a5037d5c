-- Logical decoding cannot read lanes tables. Every way to publish one is refused, whichever comes
-- first, the publication or the table, and leaves nothing behind.
SET client_min_messages = error;
CREATE SCHEMA pub_lanes;
CREATE SCHEMA pub_heap;
CREATE TABLE pub_heap.plain (a int) USING heap;
CREATE TABLE pub_lanes.t (a int) USING lanes;

-- The publication comes second.
CREATE PUBLICATION p FOR TABLE pub_lanes.t;
CREATE PUBLICATION p FOR TABLE pub_heap.plain, pub_lanes.t;
CREATE PUBLICATION p FOR TABLE pub_lanes.t WHERE (a > 0) WITH (publish = 'delete');
CREATE PUBLICATION p FOR ALL TABLES;
CREATE PUBLICATION p FOR TABLES IN SCHEMA pub_lanes;
SET search_path = pub_lanes;
CREATE PUBLICATION p FOR TABLES IN SCHEMA pub_heap, CURRENT_SCHEMA;
RESET search_path;
SELECT count(*) FROM pg_publication;
CREATE PUBLICATION p;
ALTER PUBLICATION p ADD TABLE pub_lanes.t;
ALTER PUBLICATION p SET TABLE pub_lanes.t;
ALTER PUBLICATION p ADD TABLES IN SCHEMA pub_lanes;
ALTER PUBLICATION p SET TABLES IN SCHEMA pub_heap, pub_lanes;
SELECT * FROM pg_publication_tables;

-- A publication of a partitioned table includes its lanes partitions; one of a table that others
-- inherit includes these.
CREATE TABLE pub_heap.root (a int) PARTITION BY RANGE (a);
CREATE TABLE pub_heap.middle PARTITION OF pub_heap.root FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (a);
CREATE TABLE pub_lanes.leaf PARTITION OF pub_heap.middle FOR VALUES FROM (0) TO (5) USING lanes;
CREATE TABLE pub_heap.parent (a int) USING heap;
CREATE TABLE pub_lanes.child () INHERITS (pub_heap.parent) USING lanes;
ALTER PUBLICATION p ADD TABLE pub_heap.root;
ALTER PUBLICATION p SET (publish_via_partition_root);
ALTER PUBLICATION p ADD TABLE pub_heap.root;
ALTER PUBLICATION p ADD TABLES IN SCHEMA pub_heap;
ALTER PUBLICATION p ADD TABLE pub_lanes.leaf;
ALTER PUBLICATION p ADD TABLE pub_heap.parent;
ALTER PUBLICATION p ADD TABLE ONLY pub_heap.parent;
SELECT schemaname, tablename FROM pg_publication_tables;
ALTER PUBLICATION p DROP TABLE ONLY pub_heap.parent;
DROP TABLE pub_lanes.leaf, pub_lanes.child;

-- TRUNCATE is decoded, so it may be published, but then no other change.
ALTER PUBLICATION p SET (publish = 'truncate');
ALTER PUBLICATION p ADD TABLE pub_lanes.t;
ALTER PUBLICATION p SET (publish = 'insert, truncate');
-- A statement about one publication is not refused because of another.
UPDATE pg_publication SET pubinsert = true WHERE pubname = 'p';
CREATE PUBLICATION other FOR TABLES IN SCHEMA pub_heap;
DROP PUBLICATION other;
-- A publication that includes a lanes table all the same can be mended.
ALTER PUBLICATION p DROP TABLE pub_lanes.t;
ALTER PUBLICATION p SET (publish = 'insert');

-- The table comes second.
ALTER PUBLICATION p SET TABLES IN SCHEMA pub_heap;
CREATE TABLE pub_heap.new (a int) USING lanes;
CREATE TABLE pub_heap.new (a int) USING lanes WITH (order_by = 'a');
CREATE TABLE pub_heap.new USING lanes AS SELECT 1 AS a;
SET default_table_access_method = lanes;
CREATE TABLE pub_heap.new (a int);
SELECT 1 AS a INTO pub_heap.new;
RESET default_table_access_method;
CREATE TABLE pub_lanes.leaf PARTITION OF pub_heap.middle FOR VALUES FROM (0) TO (5) USING lanes;
ALTER TABLE pub_heap.middle ATTACH PARTITION pub_lanes.t FOR VALUES FROM (0) TO (5);
ALTER TABLE pub_heap.plain SET ACCESS METHOD lanes;
ALTER TABLE pub_lanes.t SET SCHEMA pub_heap;
CREATE UNLOGGED TABLE pub_heap.unlogged (a int) USING lanes;
ALTER TABLE pub_heap.unlogged SET LOGGED;
ALTER TABLE pub_lanes.t RENAME TO renamed;
ALTER TABLE pub_lanes.renamed RENAME TO t;
SELECT to_regclass('pub_heap.new') AS new, to_regclass('pub_lanes.leaf') AS leaf,
       c.oid::regclass, relpersistence, amname
  FROM pg_class c JOIN pg_am a ON a.oid = relam
 WHERE relnamespace IN ('pub_heap'::regnamespace, 'pub_lanes'::regnamespace) ORDER BY c.oid;
-- A partitioned table cannot take its lanes partitions into a schema that is published.
CREATE TABLE pub_lanes.branch (a int) PARTITION BY RANGE (a);
CREATE TABLE pub_lanes.leaf PARTITION OF pub_lanes.branch FOR VALUES FROM (0) TO (5) USING lanes;
ALTER TABLE pub_lanes.branch SET SCHEMA pub_heap;

-- Nothing of this concerns tables that are never published, or other tables.
CREATE TEMPORARY TABLE temporary (a int) USING lanes;
CREATE MATERIALIZED VIEW pub_heap.view USING lanes AS SELECT 1 AS a;
REFRESH MATERIALIZED VIEW pub_heap.view;
CREATE TABLE pub_heap.more (a int) USING heap;
CREATE TABLE IF NOT EXISTS pub_heap.unlogged (a int) USING lanes;
INSERT INTO pub_lanes.t VALUES (1);
SELECT schemaname, tablename FROM pg_publication_tables ORDER BY tablename;
DROP PUBLICATION p;
ALTER TABLE pub_lanes.t SET SCHEMA pub_heap;
SELECT * FROM pub_heap.t;
DROP TABLE temporary;
DROP SCHEMA pub_lanes, pub_heap CASCADE;

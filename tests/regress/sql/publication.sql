-- Lanes tables are published as heap tables are: by name, by schema, through an ancestor, or with all tables.
SET client_min_messages = error;
CREATE SCHEMA pub_heap;
CREATE SCHEMA pub_lanes;
CREATE TABLE pub_heap.plain (a int) USING heap;
CREATE TABLE pub_lanes.t (a int, b text) USING lanes;
CREATE TABLE pub_heap.root (a int) PARTITION BY RANGE (a);
CREATE TABLE pub_lanes.leaf PARTITION OF pub_heap.root FOR VALUES FROM (0) TO (5) USING lanes;
CREATE PUBLICATION p FOR TABLE pub_heap.plain, pub_lanes.t (a) WHERE (a > 0);
SELECT schemaname, tablename, attnames, rowfilter FROM pg_publication_tables ORDER BY 1, 2;
ALTER PUBLICATION p SET TABLES IN SCHEMA pub_lanes;
SELECT schemaname, tablename FROM pg_publication_tables ORDER BY 1, 2;
ALTER PUBLICATION p SET TABLE pub_heap.root;
SELECT schemaname, tablename FROM pg_publication_tables ORDER BY 1, 2;
ALTER PUBLICATION p SET (publish_via_partition_root);
SELECT schemaname, tablename FROM pg_publication_tables ORDER BY 1, 2;
CREATE PUBLICATION everything FOR ALL TABLES;
SELECT schemaname, tablename FROM pg_publication_tables
 WHERE pubname = 'everything' AND schemaname IN ('pub_heap', 'pub_lanes') ORDER BY 1, 2;
DROP PUBLICATION everything;
-- Temporary and unlogged tables are not published, as of heap.
CREATE UNLOGGED TABLE pub_lanes.unlogged (a int) USING lanes;
CREATE TEMPORARY TABLE temporary (a int) USING lanes;
ALTER PUBLICATION p SET TABLE pub_lanes.unlogged;
ALTER PUBLICATION p SET TABLE temporary;
-- UPDATE and DELETE need a replica identity, INSERT and TRUNCATE do not.
ALTER PUBLICATION p SET TABLE pub_lanes.t;
INSERT INTO pub_lanes.t VALUES (1, 'x'), (2, 'y');
UPDATE pub_lanes.t SET b = 'z';
DELETE FROM pub_lanes.t;
ALTER TABLE pub_lanes.t REPLICA IDENTITY FULL;
UPDATE pub_lanes.t SET b = 'z' WHERE a = 1;
ALTER TABLE pub_lanes.t REPLICA IDENTITY DEFAULT, ADD PRIMARY KEY (a);
DELETE FROM pub_lanes.t WHERE a = 2;
SELECT * FROM pub_lanes.t;
ALTER TABLE pub_lanes.t REPLICA IDENTITY NOTHING;
DELETE FROM pub_lanes.t;
TRUNCATE pub_lanes.t;
DROP PUBLICATION p;
DROP SCHEMA pub_lanes, pub_heap CASCADE;

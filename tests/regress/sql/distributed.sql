-- lanes.append refuses tables that Citus has distributed: the rows would go into the empty shell
-- that the coordinator keeps. Citus is not installed here, so this creates its catalogue.
\set ids '\\x100000004c4e423108000c000400080008000000030000000400000001000000140000001000100004000c000800000000000000100000000c000000100000000300000002000000696400000c000000010000000200000003000000'
CREATE TABLE here (id int) USING lanes;
CREATE TABLE shell (id int) USING lanes;
CREATE TABLE heap_shell (id int) USING heap;
SELECT lanes.append('shell', :'ids');
TRUNCATE shell;
BEGIN;
SET LOCAL allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char" NOT NULL) USING heap;
INSERT INTO pg_dist_partition VALUES ('shell', 'h'), ('heap_shell', 'n');
SAVEPOINT s;
SELECT lanes.append('shell', :'ids');
ROLLBACK TO s;
SELECT lanes.append_placed('shell', :'ids');
ROLLBACK TO s;
SELECT lanes.append('heap_shell', :'ids');
ROLLBACK TO s;
SELECT lanes.append('here', :'ids');
DELETE FROM pg_dist_partition WHERE logicalrelid = 'shell'::regclass;
SELECT lanes.append('shell', :'ids');
ROLLBACK;
-- Without the catalogue nothing is distributed.
SELECT count(*) FROM shell;
SELECT lanes.append('shell', :'ids');
SELECT lanes.append('heap_shell', :'ids');
DROP TABLE here, shell, heap_shell;

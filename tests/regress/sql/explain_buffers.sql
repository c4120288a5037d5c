-- EXPLAIN (BUFFERS) counts the blocks whose rows are found in the arena, as it counts PostgreSQL's own buffers.
CREATE SCHEMA explain_buffers; SET search_path = explain_buffers;
-- What EXPLAIN tells of a statement, with all options that the server has.
CREATE FUNCTION told(statement text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE told json; more text;
BEGIN
    more := CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ', MEMORY, SERIALIZE' ELSE '' END;
    EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, SUMMARY OFF, FORMAT JSON%s) %s', more, statement) INTO told;
    RETURN told -> 0;
END $$;
-- The share of a table's blocks that a statement found in memory. Those that each participant of a scan reads of the catalog
-- and of the table's metadata come on top.
CREATE FUNCTION hits(statement text, named text DEFAULT 'seen') RETURNS text LANGUAGE plpgsql AS $$
DECLARE found int; pages int := pg_relation_size(named::regclass) / current_setting('block_size')::int;
BEGIN
    found := told(statement) #>> '{Plan,Shared Hit Blocks}';
    RETURN CASE WHEN found > 4 * pages THEN format('%s of %s', found, pages)
        WHEN found >= pages THEN 'all' WHEN found >= pages / 4 THEN 'half' ELSE 'few' END;
END $$;

CREATE TABLE seen (i int, b int) USING lanes WITH (order_by = 'i', autovacuum_enabled = off);
INSERT INTO seen SELECT g, g % 1000 FROM generate_series(1, 200000) g;
SELECT hits('SELECT sum(i) FROM seen WHERE b % 2 = 0'), hits('SELECT * FROM seen');
SET lanes.vectorize = off;
SELECT hits('SELECT sum(i) FROM seen WHERE b % 2 = 0'), hits('SELECT * FROM seen');
RESET lanes.vectorize;
-- The participants of a parallel scan count together.
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT hits('SELECT sum(i) FROM seen WHERE b % 2 = 0');
RESET max_parallel_workers_per_gather; RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;

-- Sealed rows: read from pages at first, then from what the arena keeps of them, encoded and decoded. What zones rule out or
-- answer is not read.
SELECT lanes.seal('seen') > 0 AS sealed;
SELECT hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "1st", hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "2nd",
    hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "3rd", hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "4th";
SET lanes.decode_after = 0;
SELECT hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "1st", hits('SELECT sum(b) FROM seen WHERE b % 2 = 0') AS "2nd";
RESET lanes.decode_after;
SELECT hits('SELECT sum(b) FROM seen WHERE i > 300000'), hits('SELECT min(i) FROM seen');

-- A row that is found by its number counts as one block, beside the blocks of the index.
CREATE INDEX by_b ON seen (b);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET lanes.vectorize = off;
CREATE FUNCTION root_hits(statement text) RETURNS int LANGUAGE sql AS $$ SELECT (told(statement) #>> '{Plan,Shared Hit Blocks}')::int $$;
SELECT root_hits('SELECT i FROM seen WHERE b = 7') BETWEEN 200 AND 300 AS each_row;
INSERT INTO seen SELECT g, 7 FROM generate_series(200001, 200100) g;
SELECT root_hits('SELECT i FROM seen WHERE b = 7') BETWEEN 300 AND 450 AS each_row;
RESET enable_seqscan; RESET enable_bitmapscan; RESET lanes.vectorize;

-- Statements that write count the rows that they read, and their WAL.
SELECT (told #>> '{Plan,Shared Hit Blocks}')::int >= 300 AS reads, (told #>> '{Plan,WAL Records}')::int > 0 AS writes,
    (told #>> '{Plan,WAL Bytes}')::int > 0 AS bytes FROM told('UPDATE seen SET i = i WHERE b = 7') told;
SELECT (told #>> '{Plan,WAL Records}')::int > 0 AS writes FROM told('INSERT INTO seen SELECT 1, 2') told;
SELECT (told #>> '{Plan,WAL Records}')::int > 0 AS writes FROM told('DELETE FROM seen WHERE i = 1') told;

-- Options of later versions.
SELECT told -> 'Planning' ? 'Shared Hit Blocks' AS planning,
    (told -> 'Planning' ? 'Memory Used') = is_17 AS memory, (told -> 'Serialization' ? 'Output Volume') IS NOT DISTINCT FROM nullif(is_17, false) AS serialize
    FROM (SELECT told::jsonb, current_setting('server_version_num')::int >= 170000 AS is_17 FROM told('SELECT * FROM seen') told) t;

-- A temporary table's blocks are local.
CREATE TEMPORARY TABLE own (i int) USING lanes;
INSERT INTO own SELECT generate_series(1, 100000);
SELECT (told #>> '{Plan,Local Hit Blocks}')::int + (told #>> '{Plan,Local Read Blocks}')::int > 10 AS local,
    (told #>> '{Plan,Shared Hit Blocks}')::int < 10 AS not_shared FROM told('SELECT sum(i) FROM own') told;
DROP TABLE own;
SET client_min_messages = warning;
DROP SCHEMA explain_buffers CASCADE;

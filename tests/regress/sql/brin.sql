-- requires: before 16
-- BRIN indexes: summaries of ranges of row numbers, before and after rows are sealed in another order.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET lanes.vectorize = off;
CREATE SCHEMA brin; SET search_path = brin;
-- The rows that a condition on r finds by the index and without it, and how many ranges the index left out.
CREATE FUNCTION found(condition text, OUT by_index bigint, OUT same boolean, OUT by_brin boolean) LANGUAGE plpgsql AS $$
DECLARE plan json; ids int[]; others int[];
BEGIN
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = on;
    EXECUTE format('EXPLAIN (FORMAT JSON) SELECT id FROM r WHERE %s', condition) INTO plan;
    by_brin := plan #>> '{0,Plan,Node Type}' = 'Bitmap Heap Scan';
    EXECUTE format('SELECT array_agg(id ORDER BY id) FROM r WHERE %s', condition) INTO ids;
    SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = off;
    EXECUTE format('SELECT array_agg(id ORDER BY id) FROM r WHERE %s', condition) INTO others;
    by_index := cardinality(ids); same := ids IS NOT DISTINCT FROM others;
END $$;
-- How many rows the index hands over for a condition: those of the ranges that it does not leave out.
CREATE FUNCTION looked_at(condition text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = on;
    EXECUTE format('EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) SELECT id FROM r WHERE %s', condition) INTO plan;
    RETURN (plan #>> '{0,Plan,Actual Rows}')::numeric::bigint + (plan #>> '{0,Plan,Rows Removed by Index Recheck}')::numeric::bigint;
END $$;

CREATE TABLE r (id int, ts timestamptz, name text, span int4range, v float8)
    WITH (order_by = 'name, ts', autovacuum_enabled = off);
CREATE INDEX by_ts ON r USING brin (ts, id) WITH (pages_per_range = 4);
INSERT INTO r SELECT g, '2026-01-01'::timestamptz + g * interval '1 s', 'n' || g * 7919 % 100,
    int4range(g, g + 10), CASE WHEN g % 10 <> 0 THEN g END FROM generate_series(1, 20000) g;
-- Only the first range has a summary, so the index leaves none out of the others.
SELECT found('ts < ''2026-01-01 00:10'''), looked_at('ts < ''2026-01-01 00:10''');
SELECT brin_desummarize_range('by_ts', 0);
SELECT brin_summarize_range('by_ts', 8), brin_summarize_range('by_ts', 11), brin_summarize_range('by_ts', 1000);
SELECT found('ts < ''2026-01-01 00:10'''), looked_at('ts < ''2026-01-01 00:10''');
SELECT brin_summarize_new_values('by_ts'), brin_summarize_new_values('by_ts');
SELECT found('ts < ''2026-01-01 00:10'''), looked_at('ts < ''2026-01-01 00:10''');
SELECT found('id = 20000'), looked_at('id = 20000');
-- Rows that are written later widen the summaries of their range, or are of a range without a summary.
INSERT INTO r VALUES (-1, '2025-01-01', 'first', NULL, NULL);
COPY r FROM stdin;
-2	2024-01-01 00:00:00+00	copied	[1,2)	1
\.
INSERT INTO r SELECT -g, '2020-01-01', 'many', NULL, g FROM generate_series(3, 5000) g;
SELECT found('id < 0'), found('ts = ''2024-01-01'''), found('id = -1'), found('id = -5000');
BEGIN;
UPDATE r SET id = 1000000 + id WHERE id BETWEEN 100 AND 110;
DELETE FROM r WHERE id BETWEEN 111 AND 120;
SELECT found('id > 1000000'), found('id BETWEEN 95 AND 125');
ROLLBACK;
SELECT found('id > 1000000'), found('id BETWEEN 95 AND 125');

-- Sealing sorts rows anew; their ranges stay, and so do the summaries.
SELECT lanes.seal('r') > 0 AS sealed;
SELECT found('ts < ''2026-01-01 00:10'''), found('id BETWEEN 9000 AND 9100'), found('id < -4990'), looked_at('id BETWEEN 9000 AND 9100');
SELECT brin_desummarize_range('by_ts', 32);
SELECT found('id BETWEEN 9000 AND 9100'), brin_summarize_range('by_ts', 32), found('id BETWEEN 9000 AND 9100'), looked_at('id BETWEEN 9000 AND 9100');
-- VACUUM summarises whole ranges, of rows that it has just sealed too.
INSERT INTO r SELECT g, '2027-01-01'::timestamptz + g * interval '1 s', 'n' || g * 7919 % 100, int4range(g, g + 10), g FROM generate_series(20001, 30000) g;
DELETE FROM r WHERE id % 1000 = 7;
VACUUM r;
SELECT found('id = 29000'), looked_at('id = 29000') < 5000 AS is_summarised, found('id = 30000'), found('id % 1000 = 7 AND id < 10000');
SELECT * FROM lanes.check('r');

-- Indexes that are built when the rows lie in another order.
DROP INDEX by_ts;
CREATE INDEX ON r USING brin (id) WITH (pages_per_range = 4);
SELECT found('id BETWEEN 9000 AND 9100'), looked_at('id BETWEEN 9000 AND 9100'), found('id = 30000'), found('id < -4990');
DROP INDEX r_id_idx;
SET work_mem = '64kB';
CREATE INDEX CONCURRENTLY by_id ON r USING brin (id, name, span range_inclusion_ops) WITH (pages_per_range = 4);
RESET work_mem;
SELECT found('id BETWEEN 9000 AND 9100'), looked_at('id BETWEEN 9000 AND 9100') < 5000 AS is_summarised, found('span @> 15000'), found('name = ''copied''');
REINDEX INDEX by_id;
SELECT found('span @> 15000'), looked_at('span @> 15000'), found('name IS NULL');
DROP INDEX by_id;
CREATE INDEX ON r USING brin (id int4_minmax_multi_ops, name text_bloom_ops) WITH (pages_per_range = 2);
CREATE INDEX ON r USING brin ((v * 2)) WITH (pages_per_range = 2);
CREATE INDEX ON r USING brin (v) WITH (pages_per_range = 2) WHERE id > 15000;
SELECT found('id IN (5, 25000)'), found('name = ''copied'''), found('v * 2 BETWEEN 10 AND 20'), found('v > 19990 AND id > 15000'), found('v IS NULL AND id > 15000');
SELECT * FROM lanes.check('r');

-- The table counts the blocks that tuple ids name; its file does not grow, and the planner knows how many rows there are.
SELECT lanes.seal('r') >= 0 AS sealed;
VACUUM ANALYZE r;
CREATE TABLE narrow (id int) WITH (order_by = 'id', autovacuum_enabled = off);
INSERT INTO narrow SELECT g / 100 FROM generate_series(1, 60000) g;
ALTER TABLE r RENAME TO wide; ALTER TABLE narrow RENAME TO r;
SELECT lanes.seal('r') > 0 AS sealed;
VACUUM FULL r;
CREATE INDEX by_id ON r USING brin (id) WITH (pages_per_range = 4);
VACUUM ANALYZE r;
SELECT relpages, reltuples, pg_relation_size('r') < relpages * 8192 / 2 AS is_smaller FROM pg_class WHERE relname = 'r';
SELECT found('id = 2'), found('id = 599'), looked_at('id = 599'), found('id >= 600');
EXPLAIN SELECT FROM r;
ANALYZE r;
EXPLAIN SELECT FROM r;
DROP INDEX by_id;
VACUUM r;
EXPLAIN SELECT FROM r;
ALTER TABLE r RENAME TO narrow; ALTER TABLE wide RENAME TO r;

-- Rewrites, other kinds of tables, partitions.
CREATE INDEX by_id ON r USING brin (id) WITH (pages_per_range = 4);
VACUUM FULL r;
SELECT found('id BETWEEN 9000 AND 9100'), found('id = 30000');
TRUNCATE r;
SELECT found('id = 1'), brin_summarize_new_values('by_id');
INSERT INTO r SELECT g FROM generate_series(1, 3000) g;
SELECT found('id = 2999'), brin_summarize_new_values('by_id'), found('id = 2999');
CREATE UNLOGGED TABLE un (a int); CREATE INDEX ON un USING brin (a); INSERT INTO un VALUES (1), (2);
CREATE TEMPORARY TABLE te (a int); CREATE INDEX ON te USING brin (a); INSERT INTO te VALUES (1), (2);
CREATE TABLE parent (id int) PARTITION BY RANGE (id);
CREATE TABLE part_lanes PARTITION OF parent FOR VALUES FROM (0) TO (10) USING lanes;
CREATE TABLE part_heap PARTITION OF parent FOR VALUES FROM (10) TO (20) USING heap;
CREATE INDEX ON parent USING brin (id);
INSERT INTO parent SELECT generate_series(0, 19);
SET enable_seqscan = off;
SELECT * FROM un, te WHERE un.a = 2 AND te.a = 1;
SELECT count(*) FROM parent WHERE id BETWEEN 5 AND 14;
DROP SCHEMA brin CASCADE;

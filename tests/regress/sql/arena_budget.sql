-- The storage parameter arena_budget limits a table's share of the arena. The tables have too few
-- rows for the background worker to seal. Sealed rows are decoded at once, so they take as much
-- memory as open ones.
SET lanes.decode_after = 0;
CREATE TABLE bounded (i int8, v float8) USING lanes WITH (autovacuum_enabled = off);
SELECT * FROM lanes.arena('bounded');
INSERT INTO bounded SELECT g, g / 2.0 FROM generate_series(1, 200000) g;
SELECT sum(i), sum(v) FROM bounded;
SELECT bytes_max, bytes_used > 3000000 AS all_of_it, segment_evictions FROM lanes.arena('bounded');
ALTER TABLE bounded SET (arena_budget = '1500 kB');
SELECT bytes_max, bytes_used BETWEEN 500000 AND 1500 * 1024 AS bounded, segment_evictions > 0 AS evicted FROM lanes.arena('bounded');
SELECT sum(i), sum(v) FROM bounded;
SELECT sum(i), sum(v) FROM bounded WHERE i % 3 = 0;
INSERT INTO bounded SELECT g, g / 2.0 FROM generate_series(200001, 250000) g;
SELECT count(*), sum(i + 0) FROM bounded;
SELECT lanes.seal('bounded');
SELECT count(*), sum(i + 0) FROM bounded;
SELECT bytes_max, bytes_used BETWEEN 500000 AND 1500 * 1024 AS bounded FROM lanes.arena('bounded');
-- The budget is too small for any segment: rows are read from the file.
ALTER TABLE bounded SET (arena_budget = 1000);
SELECT count(*), sum(i + 0) FROM bounded;
SELECT bytes_max, bytes_used FROM lanes.arena('bounded');
-- A rolled-back change of the budget.
BEGIN;
ALTER TABLE bounded SET (arena_budget = '4 MB');
SELECT bytes_max FROM lanes.arena('bounded');
ROLLBACK;
SELECT bytes_max FROM lanes.arena('bounded');
ALTER TABLE bounded RESET (arena_budget);
SELECT count(*), sum(i + 0) FROM bounded;
SELECT bytes_max, bytes_used > 3000000 AS all_of_it FROM lanes.arena('bounded');
ALTER TABLE bounded SET (arena_budget = 0);
SELECT bytes_max FROM lanes.arena('bounded');
ALTER TABLE bounded SET (arena_budget = 'much');
ALTER TABLE bounded SET (arena_budget = '-1 MB');
CREATE TABLE heap_table (i int) USING heap;
SELECT * FROM lanes.arena('heap_table');
DROP TABLE bounded, heap_table;

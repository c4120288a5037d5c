-- requires: before 16
-- Rows that are read in memory count as hits of the blocks that they have a share in.
CREATE TABLE seen (i int) USING lanes;
INSERT INTO seen SELECT * FROM generate_series(1, 100000);
VACUUM ANALYZE seen;
CREATE VIEW hits AS
    SELECT heap_blks_hit, relpages FROM pg_statio_user_tables s JOIN pg_class c ON c.oid = s.relid WHERE s.relname = 'seen';
SELECT pg_stat_force_next_flush();
SELECT heap_blks_hit AS before FROM hits \gset
SELECT sum(i) FROM seen WHERE i % 2 = 0;
SELECT pg_stat_force_next_flush();
SELECT heap_blks_hit - :before >= relpages AS whole, heap_blks_hit - :before < 2 * relpages + 20 AS once FROM hits;
SELECT heap_blks_hit AS before FROM hits \gset
SET lanes.vectorize = off;
SELECT sum(i) FROM seen WHERE i % 2 = 0;
SELECT pg_stat_force_next_flush();
SELECT heap_blks_hit - :before >= relpages AS whole, heap_blks_hit - :before < 2 * relpages + 20 AS once FROM hits;
RESET lanes.vectorize;
DROP VIEW hits;
DROP TABLE seen;

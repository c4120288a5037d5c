-- How far long commands have come, as PostgreSQL's views show it. An index on a function looks at the row of its own session.
CREATE TABLE t (i int) USING lanes;
INSERT INTO t SELECT i FROM generate_series(1, 200000) i;
SELECT lanes.seal('t');
DELETE FROM t WHERE i <= 1000;
CREATE FUNCTION probe(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF i = 150000 THEN
        PERFORM pg_stat_clear_snapshot();
        RAISE NOTICE 'create index: %', (SELECT format('%s, %s tenths of the blocks', phase, blocks_done * 10 / blocks_total)
            FROM pg_stat_progress_create_index WHERE pid = pg_backend_pid());
        RAISE NOTICE 'cluster: %', (SELECT format('%s, %s, %s rows read, %s written', command, phase, heap_tuples_scanned, heap_tuples_written)
            FROM pg_stat_progress_cluster WHERE pid = pg_backend_pid());
    END IF;
    RETURN i;
END $$;
CREATE INDEX ti ON t (probe(i));
CREATE INDEX tj ON t (i);
REINDEX INDEX ti;
VACUUM FULL t;
CLUSTER t USING tj;
-- Nothing is left of a report when its command has ended.
VACUUM t;
SELECT count(*) FROM pg_stat_progress_vacuum;
DROP TABLE t;
DROP FUNCTION probe(int);

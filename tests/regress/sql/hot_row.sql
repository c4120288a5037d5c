-- A row that is updated 10,000 times stays readable: what a query reads of its old versions, and the file, are bounded.
CREATE SCHEMA hot_row; SET search_path = hot_row;
CREATE TABLE hot (k int PRIMARY KEY, n int, v text) USING lanes WITH (order_by = 'k', autovacuum_enabled = off);
INSERT INTO hot SELECT g, 0, 'v' || g FROM generate_series(1, 1000) g;
SELECT lanes.seal('hot');
CREATE PROCEDURE change(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..times LOOP
        UPDATE hot SET n = n + 1 WHERE k = 500;
        COMMIT;
    END LOOP;
END $$;
-- The answer to a query, and what it reads: rows and vectors, where it is vectorised; whether few blocks.
CREATE FUNCTION read(query text, OUT answer int, OUT rows_scanned int, OUT vectors int, OUT few_blocks boolean) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE query INTO answer;
    EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, FORMAT JSON) %s', query) INTO plan;
    rows_scanned := plan #>> '{0,Plan,Rows Scanned}';
    vectors := plan #>> '{0,Plan,Vectors}';
    few_blocks := (plan #>> '{0,Plan,Shared Hit Blocks}')::int < 100;
END $$;
CREATE FUNCTION read_by_index(OUT answer int, OUT few_blocks boolean) LANGUAGE plpgsql
    SET enable_seqscan = off SET enable_bitmapscan = off SET lanes.vectorize = off AS $$
BEGIN
    SELECT r.answer, r.few_blocks INTO answer, few_blocks FROM read('SELECT n FROM hot WHERE k = 500') r;
END $$;
CREATE VIEW content AS SELECT count(*) AS rows, sum(n) AS changes, count(DISTINCT v) AS names FROM hot;
CALL change(10000);
SELECT * FROM read_by_index();
SELECT answer, rows_scanned, vectors <= 12 AS few_vectors FROM read('SELECT sum(n)::int FROM hot WHERE v = ''v500''');
SELECT * FROM content;
SELECT * FROM lanes.check('hot');
VACUUM hot;
SELECT * FROM read_by_index();
SELECT answer, rows_scanned, vectors <= 2 AS few_vectors, few_blocks FROM read('SELECT sum(n)::int FROM hot WHERE v = ''v500''');
SELECT sum(rows) FROM lanes.segments WHERE relation = 'hot'::regclass;
SELECT * FROM content;
-- Blocks of old versions are used again.
CALL change(3000);
VACUUM hot;
CALL change(3000);
VACUUM hot;
CALL change(3000);
VACUUM hot;
SELECT bytes < 1500000 AS is_bounded FROM lanes.space WHERE relation = 'hot'::regclass;
SELECT * FROM read_by_index();
SELECT * FROM content;
-- Versions of one transaction, whose older ones are seen by nobody.
DO $$ BEGIN FOR i IN 1..1000 LOOP UPDATE hot SET n = n + 1 WHERE k = 500; END LOOP; END $$;
SELECT answer FROM read_by_index();
SELECT answer, rows_scanned FROM read('SELECT sum(n)::int FROM hot WHERE v = ''v500''');
VACUUM hot;
SELECT * FROM read_by_index();
SELECT * FROM content;
SELECT * FROM lanes.check('hot');
SET client_min_messages = warning;
DROP SCHEMA hot_row CASCADE;

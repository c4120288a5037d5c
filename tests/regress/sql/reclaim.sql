-- A continuously updated table does not grow without bound: VACUUM releases the pages of dead rows,
-- and they are reused.
CREATE TABLE churn (a int, b text) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO churn SELECT i, 'x' || i FROM generate_series(1, 500) i;
CREATE TABLE sizes (round int, bytes bigint) USING heap;
CREATE PROCEDURE churn_round() LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. 4 LOOP
        UPDATE churn SET a = a;
        COMMIT;
    END LOOP;
END $$;
CALL churn_round();
VACUUM churn;
CALL churn_round();
VACUUM churn;
CALL churn_round();
VACUUM churn;
INSERT INTO sizes SELECT 3, pg_relation_size('churn');
CALL churn_round();
VACUUM churn;
CALL churn_round();
VACUUM churn;
CALL churn_round();
VACUUM churn;
CALL churn_round();
VACUUM churn;
INSERT INTO sizes SELECT 7, pg_relation_size('churn');
-- After sixteen updates of 500 rows the table has grown by at most half.
SELECT max(bytes) <= 1.5 * min(bytes) AS bounded FROM sizes;
SELECT count(*), sum(a), count(DISTINCT b) FROM churn;
-- The blocks of large runs are released when all their rows are dead, and reused by later runs.
TRUNCATE sizes;
CREATE TABLE tide (a int, b text) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO tide SELECT i, repeat('r', 100) || i FROM generate_series(1, 20000) i;
INSERT INTO sizes SELECT 1, pg_relation_size('tide');
DELETE FROM tide;
VACUUM tide;
INSERT INTO tide SELECT i, repeat('r', 100) || i FROM generate_series(1, 20000) i;
DELETE FROM tide;
VACUUM tide;
INSERT INTO tide SELECT i, repeat('r', 100) || i FROM generate_series(1, 20000) i;
INSERT INTO sizes SELECT 3, pg_relation_size('tide');
SELECT (SELECT bytes FROM sizes WHERE round = 3) < 2.5 * (SELECT bytes FROM sizes WHERE round = 1) AS reused;
SELECT count(*), sum(a), count(DISTINCT b) FROM tide;
DROP TABLE churn, tide, sizes;
DROP PROCEDURE churn_round();

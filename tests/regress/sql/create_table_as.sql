-- CREATE TABLE AS, SELECT INTO, materialized views, LIKE.
CREATE TABLE made USING lanes AS SELECT i AS id, 'v' || i % 3 AS v, i / 2.0 AS n FROM generate_series(1, 3000) i;
SELECT count(*), sum(id), count(DISTINCT v), sum(n) FROM made;
CREATE TABLE empty USING lanes AS SELECT * FROM made WITH NO DATA;
SELECT count(*) FROM empty;
INSERT INTO empty SELECT * FROM made WHERE id < 4;
SELECT * FROM empty ORDER BY id;
CREATE TABLE IF NOT EXISTS made USING lanes AS SELECT 1 AS one;
SET default_table_access_method = lanes;
SELECT id, v INTO selected FROM made WHERE id > 2990;
SELECT amname, count(*) FROM selected, pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'selected' GROUP BY amname;
CREATE TABLE defaulted (LIKE made INCLUDING ALL);
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'defaulted';
RESET default_table_access_method;
CREATE TABLE failed USING lanes AS SELECT 1 / (i - 100) AS x FROM generate_series(1, 200) i;
SELECT count(*) FROM failed;
PREPARE rows(int) AS SELECT i FROM generate_series(1, $1) i;
CREATE TABLE executed USING lanes AS EXECUTE rows(5);
SELECT array_agg(i ORDER BY i) FROM executed;

-- In a transaction that rolls back.
BEGIN;
CREATE TABLE undone USING lanes AS SELECT * FROM made;
SELECT count(*) FROM undone;
ROLLBACK;
SELECT count(*) FROM undone;

-- Materialized views.
CREATE MATERIALIZED VIEW summary USING lanes AS SELECT v, count(*) AS rows, sum(id) AS total FROM made GROUP BY v;
SELECT * FROM summary ORDER BY v;
INSERT INTO made VALUES (1, 'new', 0);
SELECT * FROM summary ORDER BY v;
REFRESH MATERIALIZED VIEW summary;
SELECT * FROM summary ORDER BY v;
CREATE MATERIALIZED VIEW later USING lanes AS SELECT id FROM made WHERE id <= 5 WITH NO DATA;
SELECT * FROM later;
REFRESH MATERIALIZED VIEW later;
SELECT id FROM later ORDER BY id;
REFRESH MATERIALIZED VIEW later WITH NO DATA;
SELECT * FROM later;

DROP MATERIALIZED VIEW summary, later;
DROP TABLE made, empty, selected, defaulted, executed;
DEALLOCATE rows;

-- CLUSTER by an index: which rows are copied, in which order, and who sees them.
SET default_table_access_method = lanes; SET timezone = 'UTC';
CREATE SCHEMA clustered; SET search_path = clustered;
CREATE TABLE t (id int, name text COLLATE "C", price numeric, gone int, tags int[]);
ALTER TABLE t DROP COLUMN gone;
INSERT INTO t SELECT g, CASE WHEN g % 10 <> 0 THEN 'n' || g * 7919 % 1009 END, g / 8.0, ARRAY[g, g % 3] FROM generate_series(1, 3000) g;
ALTER TABLE t ADD COLUMN later int DEFAULT 5;
DELETE FROM t WHERE id % 7 = 0;
UPDATE t SET price = -price WHERE id % 11 = 0;
CREATE TABLE before USING heap AS SELECT * FROM t;
CREATE INDEX by_name ON t (name, id DESC);
CREATE INDEX by_expression ON t ((price * 2) DESC NULLS LAST);
CREATE INDEX by_hash ON t USING hash (id);
CREATE INDEX by_range ON t USING gist (int4range(id, id + 1));
CREATE INDEX by_part ON t (id) WHERE id > 10;
-- Whether rows are read in an order, and are those from before.
CREATE FUNCTION is_ordered(key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE result boolean;
BEGIN
    EXECUTE format('SELECT array_agg(id ORDER BY place) = array_agg(id ORDER BY %s)
        FROM (SELECT *, row_number() OVER () AS place FROM t) r', key) INTO result;
    RETURN result AND NOT EXISTS (TABLE t EXCEPT ALL TABLE before) AND NOT EXISTS (TABLE before EXCEPT ALL TABLE t);
END $$;
CLUSTER t USING by_name;
SELECT is_ordered('name, id DESC'), is_ordered('id');
SELECT * FROM lanes.check('t');
SELECT id, name, price, tags, later FROM t WHERE id = 1001;
CLUSTER t USING by_expression;
SELECT is_ordered('price * 2 DESC NULLS LAST, id');
SELECT lanes.seal('t') > 0;
CLUSTER t;
SELECT is_ordered('price * 2 DESC NULLS LAST, id');
CLUSTER t USING by_range;
CLUSTER t USING by_hash;
CLUSTER t USING by_part;
-- More rows than the memory for the sort.
SET maintenance_work_mem = '1MB';
INSERT INTO t SELECT -g, 'x' || g, g, NULL, g FROM generate_series(1, 40000) g;
INSERT INTO before SELECT -g, 'x' || g, g, NULL, g FROM generate_series(1, 40000) g;
CREATE INDEX by_id ON t (id);
CLUSTER t USING by_id;
SELECT is_ordered('id');
SELECT * FROM lanes.check('t');
SET enable_seqscan = off; SET enable_bitmapscan = off; SET lanes.vectorize = off;
EXPLAIN (COSTS OFF) SELECT id, name FROM t WHERE id = -39999;
SELECT id, name FROM t WHERE id = -39999;
SELECT count(*) FROM t WHERE id BETWEEN 100 AND 199;
RESET enable_seqscan; RESET enable_bitmapscan; RESET lanes.vectorize;
-- A row that an older snapshot sees stays, with its deletion.
CREATE TABLE own (id int PRIMARY KEY, v int);
INSERT INTO own SELECT g, 0 FROM generate_series(10, 1, -1) g;
BEGIN;
DELETE FROM own WHERE id = 3;
UPDATE own SET v = 1 WHERE id = 5;
DECLARE old CURSOR FOR SELECT * FROM own;
FETCH 1 FROM old;
SAVEPOINT s;
CLUSTER own USING own_pkey;
ROLLBACK TO s;
CLOSE old;
CLUSTER own USING own_pkey;
SELECT * FROM own;
COMMIT;
SELECT * FROM own;
SELECT * FROM lanes.check('own');
-- A table without rows, and one without a file.
CREATE TABLE empty (id int PRIMARY KEY);
CLUSTER empty USING empty_pkey;
SELECT * FROM empty;
CREATE UNLOGGED TABLE forgotten (id int PRIMARY KEY);
INSERT INTO forgotten VALUES (2), (1);
CLUSTER forgotten USING forgotten_pkey;
SELECT * FROM forgotten;
SET client_min_messages = warning;
DROP SCHEMA clustered CASCADE;
RESET ALL;

-- A statement that writes row by row keeps its table open from row to row. Within one statement, functions change the columns,
-- the file and the rows of the table in between.
CREATE TABLE t (id int PRIMARY KEY, v int) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 5) i;

-- Columns are added, and change their types, which makes a new file.
CREATE FUNCTION change_columns() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE t SET v = v + 1 WHERE id = 1;
    ALTER TABLE t ADD COLUMN note text DEFAULT 'added';
    UPDATE t SET v = v + 1 WHERE id = 1;
    INSERT INTO t VALUES (6, 60, 'inserted');
    RETURN QUERY SELECT t::text FROM t ORDER BY id;
    ALTER TABLE t ALTER v TYPE text;
    UPDATE t SET v = v || '!' WHERE id <= 2;
    INSERT INTO t VALUES (7, 'seventy', 'inserted') ON CONFLICT DO NOTHING;
    INSERT INTO t VALUES (7, 'not', 'inserted') ON CONFLICT DO NOTHING;
    ALTER TABLE t DROP COLUMN note;
    DELETE FROM t WHERE id = 3;
    UPDATE t SET v = v || '?' WHERE id = 7;
    RETURN QUERY SELECT t::text FROM t ORDER BY id;
END $$;
SELECT * FROM change_columns();
SELECT * FROM t ORDER BY id;

-- What an exception undoes is not kept.
CREATE FUNCTION undo_columns() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (8, 'eighty');
    BEGIN
        ALTER TABLE t ADD COLUMN w float8 DEFAULT 1.5;
        INSERT INTO t VALUES (9, 'ninety', 2.5);
        UPDATE t SET w = w + 1 WHERE id >= 8;
        RAISE EXCEPTION 'enough';
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    UPDATE t SET v = v || '.' WHERE id >= 8;
    INSERT INTO t VALUES (9, 'nine');
    BEGIN
        TRUNCATE t;
        INSERT INTO t VALUES (1, 'lost');
        RAISE EXCEPTION 'enough';
    EXCEPTION WHEN OTHERS THEN NULL;
    END;
    DELETE FROM t WHERE id = 4;
    RETURN QUERY SELECT t::text FROM t ORDER BY id;
END $$;
SELECT * FROM undo_columns();

-- An index that is made meanwhile gets entries of all rows.
CREATE FUNCTION make_index() RETURNS SETOF text LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    CREATE TABLE keyed (id int, v int) USING lanes;
    INSERT INTO keyed SELECT i, 0 FROM generate_series(1, 3) i;
    UPDATE keyed SET v = v + 1;
    CREATE UNIQUE INDEX ON keyed (id);
    UPDATE keyed SET v = v + 1 WHERE v = 1 AND id + 0 = 2;
    INSERT INTO keyed VALUES (4, 4);
    INSERT INTO keyed SELECT i, 5 FROM generate_series(4, 6) i ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT keyed::text FROM keyed WHERE id BETWEEN 2 AND 5 ORDER BY id;
END $$;
SELECT * FROM make_index();

-- The lock that keeps row numbers is taken again when a savepoint has released it.
CREATE VIEW kept_numbers AS
    SELECT count(*) FROM pg_locks WHERE relation = 'keyed'::regclass AND locktype = 'page' AND page = 1;
BEGIN;
SAVEPOINT s;
UPDATE keyed SET v = 0;
TABLE kept_numbers;
ROLLBACK TO s;
TABLE kept_numbers;
UPDATE keyed SET v = v + 10 WHERE id = 1;
TABLE kept_numbers;
COMMIT;
SELECT * FROM keyed ORDER BY id;

-- A file that its own transaction made is truncated in place.
CREATE FUNCTION truncate_own() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    CREATE TABLE own (id int PRIMARY KEY, v text) USING lanes;
    INSERT INTO own VALUES (1, 'one'), (2, 'two');
    UPDATE own SET v = 'uno' WHERE id = 1;
    TRUNCATE own;
    RETURN QUERY SELECT own::text FROM own;
    INSERT INTO own VALUES (1, 'first');
    UPDATE own SET v = v || ' again' WHERE id = 1;
    TRUNCATE own;
    INSERT INTO own VALUES (1, 'last');
    RETURN QUERY SELECT own::text FROM own;
END $$;
SELECT * FROM truncate_own();
SELECT * FROM own;
CREATE TEMP TABLE emptied (id int PRIMARY KEY, v text) USING lanes ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO emptied VALUES (1, 'one');
UPDATE emptied SET v = 'uno';
TABLE emptied;
COMMIT;
TABLE emptied;
BEGIN;
INSERT INTO emptied VALUES (1, 'one') ON CONFLICT DO NOTHING;
TABLE emptied;
COMMIT;

-- Rows that are too large for the directory's pages are updated through pages of their own.
CREATE TABLE wide (id int PRIMARY KEY, v bytea) USING lanes;
INSERT INTO wide SELECT i, decode(repeat(md5(i::text), 200), 'hex') FROM generate_series(1, 50) i;
UPDATE wide SET v = v || v;
UPDATE wide SET v = v || '\x00' WHERE id % 2 = 0;
SELECT count(*), sum(length(v)), count(DISTINCT v) FROM wide;

-- A key that is updated often, within one transaction and in many, has one row.
CREATE TABLE hot (id int PRIMARY KEY, v int) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 3) i;
CREATE FUNCTION add_one(times int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE result int;
BEGIN
    FOR i IN 1..times LOOP
        UPDATE hot SET v = v + 1 WHERE id = 2 RETURNING v INTO result;
    END LOOP;
    RETURN result;
END $$;
SELECT add_one(300);
CREATE PROCEDURE add_one_each(times int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..times LOOP
        UPDATE hot SET v = v + 1 WHERE id = 2;
        COMMIT;
    END LOOP;
END $$;
CALL add_one_each(300);
SELECT * FROM hot ORDER BY id;
INSERT INTO hot VALUES (2, 0);
INSERT INTO hot SELECT i % 5, -1 FROM generate_series(1, 20) i ON CONFLICT DO NOTHING;
INSERT INTO hot SELECT i, -2 FROM generate_series(0, 5) i ON CONFLICT (id) DO UPDATE SET v = hot.v + 1;
SELECT * FROM hot ORDER BY id;

DROP VIEW kept_numbers;
DROP TABLE t, keyed, own, emptied, wide, hot;
DROP FUNCTION change_columns, undo_columns, make_index, truncate_own, add_one;
DROP PROCEDURE add_one_each;

-- INSERT … SELECT into tables with indexes writes rows together and makes their entries afterwards. Each statement runs
-- on a heap table too, and has to end as it does there.
CREATE SCHEMA in_heap;
CREATE SCHEMA in_lanes;
CREATE FUNCTION outcome(schema_name text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
    state text;
    violated text;
    found text;
BEGIN
    PERFORM set_config('search_path', schema_name || ', public', true);
    BEGIN
        EXECUTE statement;
        GET DIAGNOSTICS changed = ROW_COUNT;
        found := changed || ' rows';
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, violated = CONSTRAINT_NAME;
        found := state || ' ' || violated || ': ' || SQLERRM;
    END;
    EXECUTE 'SELECT $1 || ''; '' || count(*) || '' in the table, '' || count(DISTINCT id) || '' ids, sum '' || coalesce(sum(n), 0) FROM t'
        INTO found USING found;
    RETURN found;
END $$;
CREATE FUNCTION twice(statement text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN h = l THEN h ELSE 'heap: ' || h || ' lanes: ' || l END
    FROM (SELECT outcome('in_heap', statement) AS h, outcome('in_lanes', statement) AS l) both_of_them
$$;
CREATE TABLE in_heap.t (id int CONSTRAINT t_pkey PRIMARY KEY, n int, s text) USING heap;
CREATE TABLE in_lanes.t (id int CONSTRAINT t_pkey PRIMARY KEY, n int, s text) USING lanes;
CREATE UNIQUE INDEX by_text ON in_heap.t (lower(s)) WHERE s IS NOT NULL;
CREATE UNIQUE INDEX by_text ON in_lanes.t (lower(s)) WHERE s IS NOT NULL;
CREATE INDEX by_hash ON in_heap.t USING hash (n);
CREATE INDEX by_hash ON in_lanes.t USING hash (n);

SELECT twice('INSERT INTO t SELECT i, i % 100, ''Text '' || i FROM generate_series(1, 3000) i');
-- More rows than a run has.
SELECT twice('INSERT INTO t SELECT i, i % 100, CASE WHEN i % 3 = 0 THEN ''text '' || i END FROM generate_series(3001, 75000) i');
SET search_path = in_lanes, public;
SET enable_seqscan = off;
SELECT * FROM t WHERE id IN (1, 64, 65, 66, 3000, 3001, 68536, 68537, 75000) ORDER BY id;
SELECT id FROM t WHERE lower(s) IN ('text 65', 'text 70002') AND s IS NOT NULL ORDER BY id;
SELECT count(*), min(id), max(id) FROM t WHERE n = 7;
RESET enable_seqscan;
RESET search_path;

-- Duplicates: of a row from before, of one that the statement wrote by itself, and within a batch.
SELECT twice('INSERT INTO t SELECT i, 0, NULL FROM generate_series(76000, 74000, -1) i');
SELECT twice('INSERT INTO t SELECT 80000 + i % 500, 0, NULL FROM generate_series(1, 700) i');
SELECT twice('INSERT INTO t SELECT 80000 + i, 0, ''T'' || i % 1000 FROM generate_series(1, 1500) i');
SELECT twice('INSERT INTO t SELECT i, 1, NULL FROM generate_series(80001, 81000) i');
-- What is rolled back leaves no key behind.
SELECT twice('DO $do$ BEGIN
    BEGIN
        INSERT INTO t SELECT i, 2, NULL FROM generate_series(82001, 83000) i;
        RAISE EXCEPTION ''enough'';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    INSERT INTO t SELECT i, 3, NULL FROM generate_series(82501, 83500) i;
END $do$');

-- A function that reads the table in the middle of the statement finds the rows before its own.
CREATE FUNCTION rows_below(bound int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM t WHERE id BETWEEN 90001 AND bound);
END $$;
SELECT twice('INSERT INTO t SELECT i, rows_below(i), NULL FROM generate_series(90001, 90300) i');
-- One that writes to it meanwhile.
CREATE FUNCTION add_row(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t VALUES (key, 5, NULL);
    RETURN 6;
EXCEPTION WHEN unique_violation THEN
    RETURN 7;
END $$;
SELECT twice('INSERT INTO t SELECT i, add_row(i + 1000), NULL FROM generate_series(91001, 91300) i');
SELECT twice('INSERT INTO t SELECT i, add_row(i - 1), NULL FROM generate_series(93002, 93300) i');
-- One that finds the duplicate of the statement around it and survives its own error.
CREATE FUNCTION look(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) / (key % 2) FROM t WHERE id = key);
EXCEPTION WHEN division_by_zero THEN
    RETURN 0;
END $$;
SELECT twice('INSERT INTO t SELECT i, look(i), NULL FROM generate_series(94001, 94300) i');

SELECT twice('INSERT INTO t SELECT 94500 + i % 200, look(94500 + i), NULL FROM generate_series(1, 300) i');

-- Where something asks for the rows at once.
SELECT twice('WITH added AS (INSERT INTO t SELECT i, 8, NULL FROM generate_series(95001, 95200) i RETURNING id)
    INSERT INTO t SELECT id + 1000, 9, NULL FROM added');
SELECT twice('INSERT INTO t SELECT 97000 + i % 100, 1, NULL FROM generate_series(1, 300) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT 97000 + i % 150, 1, NULL FROM generate_series(1, 300) i ON CONFLICT (id) DO UPDATE SET n = t.n + 1');
SELECT twice('INSERT INTO t SELECT 97200 + i, 1, NULL FROM generate_series(1, 140) i ON CONFLICT (id) DO UPDATE SET n = t.n + 1');

-- ON CONFLICT DO NOTHING: keys from before, of rows written singly, of a batch, of the batch before, in several indexes.
SELECT twice('INSERT INTO t SELECT 198000 + i, i, ''once '' || i FROM generate_series(1, 3000) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT 198000 + i, i, ''once '' || i FROM generate_series(2501, 5000) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT 203001 + i / 2, i, NULL FROM generate_series(0, 999) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT 203601 + i % 200, i, NULL FROM generate_series(0, 999) i ON CONFLICT (id) DO NOTHING');
SELECT twice('INSERT INTO t SELECT 204001 + i, i, ''twin '' || i % 400 FROM generate_series(0, 999) i ON CONFLICT DO NOTHING');
-- Texts that are equal only to the index.
SELECT twice('INSERT INTO t SELECT 206001 + i, i, CASE i % 2 WHEN 0 THEN ''SAME '' ELSE ''same '' END || i / 2 FROM generate_series(0, 999) i ON CONFLICT DO NOTHING');
-- Only one of the indexes may have the key.
SELECT twice('INSERT INTO t SELECT 208001 + i % 500, i, NULL FROM generate_series(0, 999) i ON CONFLICT (id) DO NOTHING');
SELECT twice('INSERT INTO t SELECT 209001 + i, i, ''only '' || i % 500 FROM generate_series(0, 999) i ON CONFLICT (id) DO NOTHING');
SELECT twice('INSERT INTO t SELECT 209001 + i % 500, i, ''only '' || i FROM generate_series(0, 999) i ON CONFLICT (lower(s)) WHERE s IS NOT NULL DO NOTHING');
-- Functions that read and write the table meanwhile.
SELECT twice('INSERT INTO t SELECT 90001 + i, rows_below(90001 + i), NULL FROM generate_series(200, 600) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT i, add_row(i + 100), NULL FROM generate_series(212001, 212300) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO t SELECT i, add_row(i - 1), NULL FROM generate_series(213002, 213300) i ON CONFLICT DO NOTHING');
-- What is rolled back leaves no key behind.
SELECT twice('DO $do$ BEGIN
    BEGIN
        INSERT INTO t SELECT 214001 + i % 200, 2, NULL FROM generate_series(0, 299) i ON CONFLICT DO NOTHING;
        RAISE EXCEPTION ''enough'';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    INSERT INTO t SELECT 214001 + i % 300, 3, NULL FROM generate_series(0, 399) i ON CONFLICT DO NOTHING;
END $do$');
-- One snapshot for the whole transaction.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT twice('INSERT INTO t SELECT 214201 + i % 200, 2, NULL FROM generate_series(0, 299) i ON CONFLICT DO NOTHING');
COMMIT;
-- An error in the middle.
SELECT twice('INSERT INTO t SELECT 215001 + i, 1000 / (500 - i), NULL FROM generate_series(0, 999) i ON CONFLICT DO NOTHING');
-- A condition that a view checks, rows that nobody counts, and rows that EXPLAIN counts.
CREATE VIEW in_heap.small AS SELECT * FROM in_heap.t WHERE n < 500 WITH CHECK OPTION;
CREATE VIEW in_lanes.small AS SELECT * FROM in_lanes.t WHERE n < 500 WITH CHECK OPTION;
SELECT twice('INSERT INTO small SELECT 198000 + i, 700, NULL FROM generate_series(1, 300) i ON CONFLICT DO NOTHING');
SELECT twice('INSERT INTO small SELECT 216000 + i, i * 2, NULL FROM generate_series(1, 300) i ON CONFLICT DO NOTHING');
DROP VIEW in_heap.small, in_lanes.small;
SELECT twice('WITH added AS (INSERT INTO t SELECT 216000 + i, 8, NULL FROM generate_series(1, 200) i ON CONFLICT DO NOTHING)
    INSERT INTO t SELECT 216100 + i, 9, NULL FROM generate_series(1, 300) i ON CONFLICT DO NOTHING');
CREATE FUNCTION explained(schema_name text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
        INSERT INTO %I.t SELECT 217000 + i %% 700, 8, NULL FROM generate_series(1, 900) i ON CONFLICT DO NOTHING', schema_name)
    LOOP
        IF line ~ 'Tuples' THEN
            RETURN NEXT line;
        END IF;
    END LOOP;
END $$;
SELECT explained('in_heap');
SELECT explained('in_lanes');
DROP FUNCTION explained;

-- Changes of many rows, and of the same row twice.
SELECT twice('UPDATE t SET n = n + 1 WHERE id BETWEEN 100 AND 5000');
SELECT twice('UPDATE t SET n = t.n + twin.i FROM generate_series(1, 3) twin (i), generate_series(1, 300) keys (k) WHERE t.id = keys.k AND i = 1');
SELECT twice('UPDATE t SET n = n + 1 FROM generate_series(1, 3) twin WHERE id <= 300');
SELECT twice('UPDATE t SET id = id + 1 WHERE id BETWEEN 200 AND 300');
SELECT twice('UPDATE t SET id = -id WHERE id BETWEEN 200 AND 300');
SELECT twice('DELETE FROM t USING generate_series(1, 3) twin WHERE id BETWEEN 400 AND 900');
SELECT twice('INSERT INTO t SELECT i, 4, NULL FROM generate_series(400, 900) i');

-- Constraints of other kinds.
DROP INDEX in_heap.by_text, in_lanes.by_text;
ALTER TABLE in_heap.t ADD CONSTRAINT later UNIQUE (s) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE in_lanes.t ADD CONSTRAINT later UNIQUE (s) DEFERRABLE INITIALLY DEFERRED;
SELECT twice('DO $do$ BEGIN
    INSERT INTO t SELECT i, 4, ''late '' || i / 2 FROM generate_series(100001, 100300) i;
    SET CONSTRAINTS ALL IMMEDIATE;
END $do$');
ALTER TABLE in_heap.t DROP CONSTRAINT later;
ALTER TABLE in_lanes.t DROP CONSTRAINT later;
ALTER TABLE in_heap.t ADD CONSTRAINT apart EXCLUDE USING btree (id WITH =) WHERE (n > 1000);
ALTER TABLE in_lanes.t ADD CONSTRAINT apart EXCLUDE USING btree (id WITH =) WHERE (n > 1000);
SELECT twice('INSERT INTO t SELECT i, i, NULL FROM generate_series(110001, 110400) i');
ALTER TABLE in_heap.t DROP CONSTRAINT t_pkey;
ALTER TABLE in_lanes.t DROP CONSTRAINT t_pkey;
SELECT twice('INSERT INTO t SELECT 110401 + i % 200, 2000, NULL FROM generate_series(1, 300) i');
ALTER TABLE in_heap.t ADD PRIMARY KEY (id);
ALTER TABLE in_lanes.t ADD PRIMARY KEY (id);

-- Sealed, all entries still find their rows.
SELECT lanes.seal('in_lanes.t') > 0 AS is_sealed;
SELECT twice('INSERT INTO t SELECT i, 0, NULL FROM generate_series(111000, 110350, -1) i');
SELECT twice('INSERT INTO t SELECT i, 0, NULL FROM generate_series(218000, 217001, -1) i ON CONFLICT DO NOTHING');
SELECT twice('UPDATE t SET n = n + 1 WHERE id BETWEEN 90001 AND 97400');
SET enable_seqscan = off;
SELECT count(*) FROM in_lanes.t l FULL JOIN in_heap.t h USING (id) WHERE (l.n, l.s) IS DISTINCT FROM (h.n, h.s);
SELECT count(*) FROM generate_series(1, 218000) i
WHERE (SELECT n FROM in_lanes.t WHERE id = i) IS DISTINCT FROM (SELECT n FROM in_heap.t WHERE id = i);
RESET enable_seqscan;
DROP TABLE in_heap.t, in_lanes.t;
-- The function of an index reads the table while the index is asked for a key.
CREATE TABLE t (id int, s text) USING lanes;
CREATE FUNCTION folded(s text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN lower(s) || (SELECT count(*) FROM t WHERE id = 0);
END $$;
CREATE UNIQUE INDEX t_folded ON t (folded(s));
INSERT INTO t SELECT i, 'Text ' || i % 70 FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
INSERT INTO t SELECT i, 'TEXT ' || i FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
SELECT count(*), count(DISTINCT lower(s)) FROM t;
DROP TABLE t;
DROP FUNCTION folded;
DROP SCHEMA in_heap, in_lanes;
DROP FUNCTION twice, outcome, rows_below, add_row, look;

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
SELECT twice('UPDATE t SET n = n + 1 WHERE id BETWEEN 90001 AND 97400');
SET enable_seqscan = off;
SELECT count(*) FROM in_lanes.t l FULL JOIN in_heap.t h USING (id) WHERE (l.n, l.s) IS DISTINCT FROM (h.n, h.s);
SELECT count(*) FROM generate_series(1, 111000) i
WHERE (SELECT n FROM in_lanes.t WHERE id = i) IS DISTINCT FROM (SELECT n FROM in_heap.t WHERE id = i);
RESET enable_seqscan;
DROP TABLE in_heap.t, in_lanes.t;
DROP SCHEMA in_heap, in_lanes;
DROP FUNCTION twice, outcome, rows_below, add_row, look;

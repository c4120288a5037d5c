-- Vectorised scans by several processes. Each answer is compared with that of one process.
-- A function that no node of this extension evaluates.
CREATE FUNCTION text_length(text) RETURNS int VOLATILE PARALLEL SAFE STRICT LANGUAGE internal AS 'textlen';
CREATE TABLE l (id int, k int, s text, f float8) USING lanes;
INSERT INTO l SELECT i, i % 10, 's' || i % 7, CASE WHEN i % 13 > 0 THEN i % 101 END FROM generate_series(1, 80000) i;
CREATE TABLE small (k int, name text) USING lanes;
INSERT INTO small SELECT i, 'name ' || i FROM generate_series(0, 9) i;
ANALYZE l, small;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE serial text; parallel text; plan text := ''; line text;
BEGIN
    SET LOCAL max_parallel_workers_per_gather = 0;
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO serial;
    SET LOCAL max_parallel_workers_per_gather = 2;
    EXECUTE format('SELECT string_agg(q::text, E''\n'' ORDER BY q::text) FROM (%s) q', query) INTO parallel;
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        plan := plan || line;
    END LOOP;
    IF serial IS DISTINCT FROM parallel THEN
        RETURN format('%s differs: %s instead of %s', query, parallel, serial);
    END IF;
    RETURN CASE WHEN plan LIKE '%Parallel Custom Scan (Lanes%' THEN 'same' ELSE 'same, but: ' || plan END;
END $$;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;

-- Queries with a parallel plan.
EXPLAIN (COSTS OFF) SELECT id FROM l WHERE f > 99 AND text_length(s) + 0 * id = 2;
EXPLAIN (COSTS OFF) SELECT count(*), sum(text_length(s)) FROM l WHERE f > 50;
EXPLAIN (COSTS OFF) SELECT count(*) FROM l JOIN small USING (k) WHERE name > 'name 4' AND text_length(s) + 0 * id = 2;
-- A query that is cheaper in one process.
EXPLAIN (COSTS OFF) SELECT id FROM l ORDER BY id DESC LIMIT 5;
SELECT count(*), sum(text_length(s)) FROM l WHERE f > 50;
SET lanes.vectorize = require;
SELECT count(*), sum(id + text_length(s)) FROM l WHERE f > 50;
SET lanes.vectorize = on;
-- EXPLAIN counts the work of all participants.
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(line, 'Launched: \d', 'Launched: N') FROM pg_temp.explained(query, 'Segments|Vectors|Rows|Workers Launched') line $$;
SELECT explained('SELECT count(*), sum(text_length(s)) FROM l WHERE f > 50');
SELECT explained('SELECT count(*), sum(text_length(s)) FROM l WHERE id > 75000');

SELECT same('SELECT * FROM l WHERE text_length(s) + 0 * id = 2 AND id % 4321 = 7');
SELECT same('SELECT count(*), sum(id), count(f), sum(text_length(s)) FROM l');
SELECT same('SELECT s, count(*), max(text_length(s)) FROM l GROUP BY s');
SELECT same('SELECT name, count(*), sum(id) FROM l JOIN small USING (k) WHERE length(name) = 6 GROUP BY name');
SELECT same('SELECT count(*), sum(text_length(a.s)) FROM l a JOIN l b ON a.id = b.id + 1 WHERE b.f < 3');
SELECT same('SELECT count(*), sum(text_length(s)) FROM l WHERE f > (SELECT max(k) * 10 FROM small)');
SELECT same('SELECT count(*), sum(text_length(s)) FROM l WHERE id < 0');

-- Rescans of a parallel scan.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT same('SELECT x, c FROM generate_series(1, 3) x LEFT JOIN (SELECT count(*) + sum(text_length(s)) AS c FROM l WHERE f > 50) q ON c > x');
SELECT x, (SELECT count(*) + sum(text_length(s)) FROM l WHERE f > x * 30) AS c FROM generate_series(1, 3) x;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- Only workers participate, then only the leader.
SET parallel_leader_participation = off;
SELECT same('SELECT count(*), sum(id), sum(text_length(s)) FROM l WHERE f > 50');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT same('SELECT count(*), sum(id), sum(text_length(s)) FROM l WHERE f > 50');
RESET max_parallel_workers;

-- A worker runs the whole plan.
SELECT set_config(name, 'regress', false) AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET max_parallel_workers_per_gather = 2;
SELECT count(*), sum(id), sum(text_length(s)) FROM l WHERE f > 50;
SELECT id FROM l ORDER BY f DESC NULLS LAST, id LIMIT 3;
SELECT DISTINCT ON (k) k, id FROM l WHERE k < 3 ORDER BY k, f DESC NULLS LAST, id;
SELECT s, count(*), sum(f) FROM l GROUP BY s ORDER BY s;
SELECT DISTINCT k FROM l ORDER BY k LIMIT 3;
SELECT l.id, name FROM small, LATERAL (SELECT id FROM l WHERE l.k = small.k ORDER BY id DESC LIMIT 1) l ORDER BY id;
SELECT set_config(name, reset_val, false) AS forced FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');

-- Changes of the same transaction, and a volatile function that reads the rows that its own command
-- inserts.
BEGIN;
DELETE FROM l WHERE k = 3;
UPDATE l SET s = 'sss' WHERE id = 80000;
INSERT INTO l SELECT i, 77, 'new', 60 FROM generate_series(1, 3000) i;
SELECT same('SELECT count(*), sum(id), sum(text_length(s)) FROM l WHERE f > 50');
SELECT count(*), sum(id), sum(text_length(s)) FROM l WHERE f > 50;
CREATE FUNCTION seen() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ DECLARE c bigint; BEGIN EXECUTE 'SELECT count(*) + sum(text_length(s)) - sum(text_length(s)) FROM l' INTO c; RETURN c; END $$;
CREATE TEMP TABLE seen_before AS SELECT seen() AS seen;
INSERT INTO l SELECT seen() - seen, 1, 'x', 1 FROM seen_before, generate_series(1, 3) i;
SELECT id FROM l WHERE s = 'x' ORDER BY id;
ROLLBACK;
DROP TABLE l, small;
DROP FUNCTION same(text);
DROP FUNCTION explained(text), text_length(text);

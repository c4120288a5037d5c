-- requires: contrib
-- Types and operator classes of other extensions: columns and indexes of a lanes table behave as those of its heap twin.
CREATE SCHEMA beside;
SET search_path = beside, public;
SET client_min_messages = warning;
CREATE EXTENSION citext SCHEMA beside;
CREATE EXTENSION hstore SCHEMA beside;
CREATE EXTENSION ltree SCHEMA beside;
CREATE EXTENSION pg_trgm SCHEMA beside;
CREATE EXTENSION btree_gin SCHEMA beside;
CREATE EXTENSION btree_gist SCHEMA beside;
CREATE EXTENSION amcheck SCHEMA beside;
CREATE EXTENSION cube SCHEMA beside;
CREATE EXTENSION isn SCHEMA beside;

-- Executes a statement for both twins, %s being the table.
CREATE PROCEDURE for_both(statement text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE replace(statement, '%s', 'in_heap');
    EXECUTE replace(statement, '%s', 'in_lanes');
END
$$;
-- The twins' rows, for a query by sequential scans, by vectors, and by indexes alone. NULL is a difference.
CREATE FUNCTION same(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    mode text;
    expected text;
    found text;
    rows bigint;
BEGIN
    FOREACH mode IN ARRAY ARRAY['on, on', 'on, off', 'off, off'] LOOP
        PERFORM set_config('enable_seqscan', split_part(mode, ', ', 1), true);
        PERFORM set_config('lanes.vectorize', split_part(mode, ', ', 2), true);
        EXECUTE format('SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text COLLATE "C")) FROM (%s) t',
                       replace(query, '%s', 'in_heap')) INTO rows, expected;
        EXECUTE format('SELECT md5(string_agg(t::text, chr(10) ORDER BY t::text COLLATE "C")) FROM (%s) t',
                       replace(query, '%s', 'in_lanes')) INTO found;
        IF expected IS DISTINCT FROM found THEN
            RETURN NULL;
        END IF;
    END LOOP;
    RETURN rows;
END
$$;
CREATE TABLE queries (place serial, query text);
INSERT INTO queries (query) VALUES
    ('SELECT * FROM %s'),
    ('SELECT k FROM %s WHERE name = ''NAME 7'''),
    ('SELECT name::text, count(*) FROM (SELECT lower(name::text)::citext AS name FROM %s) s GROUP BY name'),
    ('SELECT lower(min(name)::text), lower(max(name)::text), count(DISTINCT name) FROM %s'),
    ('SELECT k FROM %s WHERE name BETWEEN ''name 3'' AND ''NAME 5'''),
    ('SELECT k FROM %s WHERE attributes @> ''a=>3'''),
    ('SELECT k FROM %s WHERE attributes ? ''b'''),
    ('SELECT attributes -> ''a'', count(*) FROM %s GROUP BY 1'),
    ('SELECT path, count(*) FROM %s GROUP BY path'),
    ('SELECT k FROM %s WHERE path <@ ''top.n3'''),
    ('SELECT k FROM %s WHERE path ~ ''top.*.m2'''),
    ('SELECT k FROM %s WHERE remark LIKE ''%ab1%'''),
    ('SELECT k FROM %s WHERE remark ILIKE ''%AB1%'' AND k < 3000'),
    ('SELECT k FROM %s WHERE remark ~ ''ab[12]c'''),
    ('SELECT k FROM %s WHERE remark % ''some text ab12cd'''),
    ('SELECT k FROM %s WHERE point <@ cube(array[0, 0], array[5, 5])'),
    ('SELECT k FROM %s WHERE g = 7 AND remark LIKE ''%ab7%'''),
    ('SELECT k FROM %s WHERE g BETWEEN 3 AND 4 AND k > 100'),
    ('SELECT k, code FROM %s WHERE code = isbn(''978039304002'' || 9)'),
    ('SELECT a.k, b.k FROM %s a JOIN %s b ON a.name = b.name AND a.attributes = b.attributes WHERE a.k < 40 AND b.k < 400');
CREATE TABLE in_heap (k int, name citext, attributes hstore, path ltree, remark text, point cube, g smallint, code isbn) USING heap;
CREATE TABLE in_lanes (LIKE in_heap) USING lanes;
CREATE PROCEDURE fill(first int, last int) LANGUAGE plpgsql AS $$
BEGIN
    CALL for_both(format($q$INSERT INTO %%s SELECT i, CASE WHEN i %% 2 = 0 THEN 'Name ' ELSE 'NAME ' END || i %% 10,
        CASE WHEN i %% 11 > 0 THEN hstore(ARRAY['a', 'b'], ARRAY[(i %% 5)::text, NULL]) || hstore('k' || i %% 3, 'v') END,
        ('top.n' || i %% 4 || '.m' || i %% 6)::ltree, 'some text ab' || i %% 100 || 'cd', cube(ARRAY[i %% 20, i %% 30]),
        i %% 9, CASE WHEN i %% 13 = 0 THEN isbn('9780393040029') END FROM generate_series(%s, %s) i$q$, first, last));
END
$$;
CALL fill(1, 3000);
SELECT query, same(query) FROM queries ORDER BY place;
SELECT lanes.seal('in_lanes') > 0 AS sealed;
CALL fill(3001, 4000);
SELECT count(*) FROM queries WHERE same(query) IS NULL;
-- Indexes by all of them, over sealed and open rows, and kept while rows come, change and go.
CREATE PROCEDURE add_indexes() LANGUAGE plpgsql AS $$
DECLARE
    columns text;
BEGIN
    FOREACH columns IN ARRAY ARRAY['(name)', 'USING hash (name)', 'USING gin (attributes)', 'USING gist (attributes)',
        'USING gist (path)', '(path)', 'USING gin (remark gin_trgm_ops)', 'USING gist (remark gist_trgm_ops)',
        'USING gist (point)', 'USING gin (g, remark gin_trgm_ops)', 'USING gist (g, k)', '(code)', '(lower(name::text), k)'] LOOP
        CALL for_both('CREATE INDEX ON %s ' || columns);
    END LOOP;
END
$$;
CALL add_indexes();
SELECT count(*) FROM queries WHERE same(query) IS NULL;
CALL fill(4001, 5000);
CALL for_both('DELETE FROM %s WHERE k % 7 = 0');
CALL for_both($$UPDATE %s SET name = upper(name::text), attributes = attributes || 'z=>1', remark = 'ab7 changed' WHERE k % 17 = 0$$);
SELECT count(*) FROM queries WHERE same(query) IS NULL;
SELECT lanes.seal('in_lanes') > 0 AS sealed;
VACUUM in_lanes;
SELECT query, same(query) FROM queries ORDER BY place;
SELECT * FROM lanes.check('in_lanes');
-- amcheck reads btrees of lanes tables; with `heapallindexed` it scans the table for rows without an entry.
CREATE FUNCTION btrees() RETURNS TABLE (checked bigint) LANGUAGE sql AS $$
    SELECT count(*) FROM (SELECT bt_index_check(i.indexrelid, true), bt_index_parent_check(i.indexrelid, true)
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
     WHERE i.indrelid = 'in_lanes'::regclass OFFSET 0) checked
$$;
SELECT * FROM btrees();
CALL fill(5001, 5500);
CALL for_both('DELETE FROM %s WHERE k % 3 = 0');
SELECT * FROM btrees();
VACUUM in_lanes;
SELECT lanes.seal('in_lanes') > 0 AS sealed;
SELECT * FROM btrees();
SELECT * FROM verify_heapam('in_lanes');
-- Uniqueness and exclusion by operators of other extensions.
CREATE TABLE unique_names (name citext PRIMARY KEY, hits int) USING lanes;
INSERT INTO unique_names VALUES ('First', 1), ('Second', 1);
SELECT lanes.seal('unique_names') > 0 AS sealed;
INSERT INTO unique_names VALUES ('FIRST', 1);
INSERT INTO unique_names VALUES ('FIRST', 1) ON CONFLICT (name) DO UPDATE SET hits = unique_names.hits + 1;
SELECT * FROM unique_names ORDER BY name;
CREATE TABLE booked (room int, during tstzrange, EXCLUDE USING gist (room WITH =, during WITH &&)) USING lanes;
INSERT INTO booked SELECT r, tstzrange('2026-01-01 00:00+00'::timestamptz + h * interval '1 hour', '2026-01-01 00:00+00'::timestamptz + (h + 1) * interval '1 hour')
  FROM generate_series(1, 20) r, generate_series(0, 99) h;
SELECT lanes.seal('booked') > 0 AS sealed;
INSERT INTO booked VALUES (3, '[2026-01-01 05:30+00, 2026-01-01 05:40+00)');
INSERT INTO booked VALUES (21, '[2026-01-01 05:30+00, 2026-01-01 05:40+00)');
UPDATE booked SET room = 3 WHERE room = 21;
DELETE FROM booked WHERE room = 3 AND during @> '2026-01-01 05:30+00'::timestamptz;
UPDATE booked SET room = 3 WHERE room = 21;
SELECT count(*) FROM booked;
-- The planner knows what costly functions cost, such as those of PostGIS: an index that spares calls is chosen.
CREATE FUNCTION costly_equal(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT COST 10000 AS 'BEGIN RETURN $1 = $2; END';
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = costly_equal, RESTRICT = eqsel);
CREATE OPERATOR CLASS costly_ops FOR TYPE text USING hash AS OPERATOR 1 ===, FUNCTION 1 hashtext(text);
CALL for_both('CREATE INDEX ON %s USING hash (remark costly_ops)');
CALL for_both('ANALYZE %s');
EXPLAIN (COSTS OFF) SELECT k FROM in_heap WHERE remark === 'some text ab12cd';
EXPLAIN (COSTS OFF) SELECT k FROM in_lanes WHERE remark === 'some text ab12cd';
EXPLAIN (COSTS OFF) SELECT k FROM in_lanes WHERE name = 'name 3' AND k % 2 = 0;
SELECT same($$SELECT k FROM %s WHERE remark === 'some text ab12cd'$$);
-- An extension that goes takes its columns along.
DROP EXTENSION hstore CASCADE;
SELECT count(*), count(name) FROM in_lanes;
SELECT * FROM lanes.check('in_lanes');
SELECT lanes.seal('in_lanes') >= 0 AS sealed;
SELECT attname FROM pg_attribute WHERE attrelid = 'in_lanes'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
RESET search_path;
DROP SCHEMA beside CASCADE;

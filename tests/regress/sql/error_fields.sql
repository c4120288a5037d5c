-- requires: before 16
-- Errors are those of heap, with all their fields: code, message, detail, names, context.

CREATE FUNCTION complains(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF x = 1500 THEN
        RAISE EXCEPTION 'no % here', x USING ERRCODE = 'XX123', DETAIL = 'told', HINT = 'take another',
            COLUMN = 'a_column', CONSTRAINT = 'a_constraint', TABLE = 'a_table', SCHEMA = 'a_schema', DATATYPE = 'a_type';
    END IF;
    RETURN x;
END $$;
CREATE FUNCTION divides(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN 10 / (x - 1500);
END $$;
CREATE FUNCTION complains_within(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN complains(x) + 0;
END $$;
-- It looks at the tables, and survives what it meets.
CREATE FUNCTION swallows(x int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF x % 1000 = 0 THEN
        BEGIN
            PERFORM count(*) FROM lone;
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END IF;
    RETURN x;
END $$;
CREATE FUNCTION complains_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM complains(NEW.id);
    RETURN NEW;
END $$;
CREATE DOMAIN small_number AS int CHECK (VALUE < 1000);
CREATE TYPE colour AS ENUM ('red', 'green');

CREATE TABLE statements (number int GENERATED ALWAYS AS IDENTITY, statement text);
INSERT INTO statements (statement) VALUES
    ('INSERT INTO plain SELECT g, complains(g) FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, complains_within(g) FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, divides(g) FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, 1 / (g - 1500) FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, 2000000000 + g * 1000000 FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, (''x'' || g)::int FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, g::small_number FROM generate_series(1, 3000) g'),
    ('INSERT INTO plain SELECT g, CASE WHEN g = 1500 THEN length(''blue''::text::colour::text) END FROM generate_series(1, 3000) g'),
    ('INSERT INTO checked SELECT g, 1500 - g FROM generate_series(1, 3000) g'),
    ('INSERT INTO checked SELECT g, nullif(g, 1500) FROM generate_series(1, 1600) g'),
    ('INSERT INTO checked (id, v, short) SELECT g, 1, repeat(''x'', g) FROM generate_series(1, 3000) g'),
    ('INSERT INTO keyed SELECT g % 1500, g FROM generate_series(1, 3000) g'),
    ('INSERT INTO lone SELECT g % 1500, g FROM generate_series(1, 3000) g'),
    ('INSERT INTO lone SELECT g % 1500, swallows(g) FROM generate_series(1, 3000) g'),
    ('INSERT INTO lone SELECT g % 1500, swallows(g) FROM generate_series(1, 2200) g'),
    ('INSERT INTO indexed SELECT g, g FROM generate_series(1, 3000) g'),
    ('INSERT INTO indexed SELECT g, g FROM generate_series(1490, 1510) g'),
    ('INSERT INTO referring SELECT g, g FROM generate_series(1, 3000) g'),
    ('INSERT INTO triggered SELECT g, g FROM generate_series(1, 3000) g'),
    ('INSERT INTO viewed SELECT g, 1500 - g FROM generate_series(1, 3000) g'),
    ('INSERT INTO excluding SELECT g, g % 1500 FROM generate_series(1, 1600) g'),
    ('INSERT INTO generating SELECT g, 1500 - g FROM generate_series(1, 3000) g'),
    ('INSERT INTO partitioned SELECT g, g FROM generate_series(1, 3000) g'),
    ('CREATE TABLE made AS SELECT id, complains(id) FROM filled'),
    ('CREATE INDEX ON filled (complains(id))'),
    ('CREATE INDEX ON filled (id) WHERE complains_within(id) > 1'),
    ('CREATE UNIQUE INDEX filled_thousand ON filled ((id % 1000))'),
    ('ALTER TABLE filled ADD CONSTRAINT of_filled CHECK (id <> 1500)'),
    ('ALTER TABLE filled ALTER COLUMN v TYPE bigint USING complains(id)'),
    ('SELECT count(*) FROM filled WHERE complains(id) > 0'),
    ('SELECT count(*) FROM filled WHERE complains_within(id) > 0 AND v > 0'),
    ('SELECT sum(complains(id)) FROM filled'),
    ('SELECT v % 10, max(complains_within(id)) FROM filled GROUP BY 1'),
    ('SELECT count(*) FROM filled WHERE 1 / (id - 1500) > 0'),
    ('SELECT sum(1 / (id - 1500)) FROM filled'),
    ('SELECT count(*) FROM filled a JOIN filled b ON a.id = complains(b.id)'),
    ('SELECT id FROM filled ORDER BY complains(id) LIMIT 3'),
    ('SELECT sum(id) OVER (ORDER BY complains(id)) FROM filled'),
    ('SELECT id FROM filled WHERE v IN (SELECT complains(id) FROM filled)'),
    ('SELECT (''x'' || max(v))::int FROM filled'),
    ('UPDATE filled SET v = complains(id)'),
    ('UPDATE filled SET id = id WHERE complains_within(id) > 0'),
    ('DELETE FROM filled WHERE complains(id) > 0'),
    ('UPDATE keyed SET id = 2'),
    ('UPDATE checked SET v = -v'),
    ('UPDATE checked SET v = NULL');

CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text; told text; detail text; hint text; context text; named text[];
    c text; n text; d text; t text; s text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, told = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT, c = COLUMN_NAME, n = CONSTRAINT_NAME,
        d = PG_DATATYPE_NAME, t = TABLE_NAME, s = SCHEMA_NAME;
    RETURN concat_ws(E'\n', code || ' ' || told, nullif(detail, ''), nullif(hint, ''),
        concat_ws('/', nullif(s, ''), nullif(t, ''), nullif(c, ''), nullif(n, ''), nullif(d, '')), context);
END $$;

CREATE FUNCTION outcomes(method text) RETURNS TABLE (number int, outcome text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('default_table_access_method', method, true);
    DROP SCHEMA IF EXISTS tried CASCADE;
    CREATE SCHEMA tried;
    PERFORM set_config('search_path', 'tried, public', true);
    CREATE TABLE plain (id int, v int);
    CREATE TABLE checked (id int, v int NOT NULL CHECK (v >= 0), short varchar(1500));
    INSERT INTO checked VALUES (0, 1);
    CREATE TABLE keyed (id int PRIMARY KEY, v int);
    INSERT INTO keyed VALUES (-1, 1), (-2, 1);
    -- No trigger of a foreign key: its rows are gathered.
    CREATE TABLE lone (id int PRIMARY KEY, v int);
    CREATE TABLE indexed (id int, v int);
    CREATE INDEX ON indexed (complains_within(v));
    CREATE TABLE referring (id int, v int REFERENCES keyed);
    CREATE TABLE triggered (id int, v int);
    CREATE TRIGGER complains AFTER INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION complains_of_row();
    CREATE VIEW viewed AS SELECT * FROM plain WHERE v > 0 WITH CHECK OPTION;
    CREATE TABLE excluding (id int, v int, EXCLUDE (v WITH =));
    CREATE TABLE generating (id int, v int, w int GENERATED ALWAYS AS (1000 / v) STORED);
    CREATE TABLE partitioned (id int, v int) PARTITION BY RANGE (id);
    CREATE TABLE low PARTITION OF partitioned FOR VALUES FROM (1) TO (1500);
    CREATE TABLE filled (id int, v int);
    INSERT INTO filled SELECT g, g FROM generate_series(1, 3000) g;
    RETURN QUERY SELECT s.number, outcome(s.statement) FROM statements s ORDER BY s.number;
END $$;

-- The outcomes themselves are in heap tables, whatever the default is.
CREATE TEMP TABLE of_heap USING heap AS SELECT * FROM outcomes('heap');
CREATE TEMP TABLE of_lanes USING heap AS SELECT * FROM outcomes('lanes');
SET client_min_messages = warning;
SELECT count(*) FROM of_lanes;
-- What differs.
\x on
SELECT statement, h.outcome AS heap, l.outcome AS lanes
FROM statements JOIN of_heap h USING (number) JOIN of_lanes l USING (number)
WHERE h.outcome <> l.outcome ORDER BY number;
SET lanes.vectorize = off;
CREATE TEMP TABLE by_row USING heap AS SELECT * FROM outcomes('lanes');
RESET lanes.vectorize;
SELECT statement, h.outcome AS heap, l.outcome AS lanes
FROM statements JOIN of_heap h USING (number) JOIN by_row l USING (number)
WHERE h.outcome <> l.outcome ORDER BY number;
\x off
-- Some of them.
\pset format unaligned
SELECT outcome FROM of_lanes JOIN statements USING (number)
WHERE statement ~ 'swallows|complains_within\(g\)|CREATE INDEX ON filled \(comp' ORDER BY number;
\pset format aligned
DROP SCHEMA tried CASCADE;
DROP FUNCTION outcomes, outcome, complains_within, complains, divides, swallows, complains_of_row;
DROP TABLE statements, of_heap, of_lanes, by_row;
DROP DOMAIN small_number;
DROP TYPE colour;

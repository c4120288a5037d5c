-- Conditions on one column that the engine does not implement: PostgreSQL evaluates them once per
-- value.
SET default_table_access_method = lanes; -- Heap tables are marked USING heap.
SET max_parallel_workers_per_gather = 0;
CREATE TYPE mood AS ENUM ('low', 'fair', 'high');
CREATE DOMAIN small_number AS int CHECK (VALUE < 1000);
CREATE TABLE small (id int, region text) USING heap;
INSERT INTO small SELECT i, CASE i % 3 WHEN 0 THEN 'eu' ELSE 'us' END FROM generate_series(1, 40) i;
CREATE TABLE h (id int, tag int, tiny int2, day date, at timestamptz, f float8, r real, ok bool, mood mood, dom small_number,
  note text, num numeric, u uuid) USING heap;
INSERT INTO h SELECT i, CASE WHEN i % 11 > 0 THEN i % 50 END, i % 7 - 3, date '2026-01-01' + i % 400,
  timestamptz '2026-01-01 00:00Z' + i * interval '1 s', CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' ELSE i % 9 / 2.0 END,
  i % 13 / 4.0, CASE WHEN i % 3 > 0 THEN i % 2 = 0 END, (enum_range(NULL::mood))[1 + i % 3], i % 90,
  CASE WHEN i % 10 > 0 THEN 'note ' || i % 30 END, i % 8 / 3.0, md5((i % 6)::text)::uuid
  FROM generate_series(1, 9000) i;
CREATE TABLE l (LIKE h) WITH (order_by = 'tag, at');
INSERT INTO l SELECT * FROM h WHERE id <= 6000;
SELECT lanes.seal('l') > 0 AS sealed;
-- Some rows are sealed, some are open, and some are deleted.
INSERT INTO l SELECT * FROM h WHERE id > 6000;
DELETE FROM l WHERE tag = 33;
DELETE FROM h WHERE tag = 33;
BEGIN;
INSERT INTO l (id, tag) VALUES (0, 77);
ROLLBACK;
ANALYZE l, h, small;

CREATE SEQUENCE calls;
CREATE FUNCTION odd(x int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN x % 2 = 1; END $$;
CREATE FUNCTION never_33(x int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$
  BEGIN PERFORM nextval('calls'); RETURN 1 / (x - 33) + 1 / (x - 77) = 0; END $$;

-- Returns the rows that pass a condition in heap and in lanes (aggregated, as rows, in order), and
-- the reason if the engine does not evaluate it.
CREATE FUNCTION same(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  query text;
  line text;
  reason text := '';
  answer text;
  answers text[] := '{}';
BEGIN
  FOREACH query IN ARRAY ARRAY['SELECT count(*) || '', '' || coalesce(sum(id), 0) FROM h t WHERE %s',
    'SELECT count(*) || '', '' || coalesce(sum(id), 0) FROM l t WHERE %s',
    'SELECT count(*) || '', '' || coalesce(sum(id), 0) FROM (SELECT id FROM l t WHERE %s OFFSET 0) s',
    'SELECT count(*) || '', '' || coalesce(sum(id), 0) FROM (SELECT id FROM l t WHERE %s ORDER BY id DESC LIMIT 100000) s'] LOOP
    BEGIN
      EXECUTE format(query, condition) INTO answer;
    EXCEPTION WHEN OTHERS THEN
      answer := SQLSTATE || ' ' || SQLERRM;
    END;
    answers := answers || answer;
  END LOOP;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM l t WHERE ' || condition LOOP
    reason := reason || coalesce(substring(line FROM '(Not Vectorised: .*)'), '');
  END LOOP;
  IF answers[2] = ALL (answers) AND answers[1] = answers[2] THEN
    RETURN concat_ws('; ', answers[1], nullif(reason, ''));
  END IF;
  RETURN 'differs: ' || answers::text;
END $$;
-- Returns the number of values for which conditions were evaluated.
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION evaluated(query text) RETURNS text LANGUAGE sql AS $$
    SELECT coalesce((SELECT trim(line) FROM pg_temp.explained(query, 'Values Evaluated') line LIMIT 1), 'none') $$;

-- A subquery, with and without NULLs in its result.
EXPLAIN (COSTS OFF) SELECT count(*) FROM l WHERE tag NOT IN (SELECT id FROM small WHERE region = 'eu');
EXPLAIN (COSTS OFF) SELECT * FROM l WHERE tag NOT IN (SELECT id FROM small WHERE region = 'eu');
SELECT evaluated($$SELECT count(*) FROM l WHERE tag NOT IN (SELECT id FROM small WHERE region = 'eu')$$);
SELECT condition, same(condition) FROM (VALUES
  ('tag NOT IN (SELECT id FROM small WHERE region = ''eu'')'),
  ('tag NOT IN (SELECT id FROM small WHERE region = ''none'')'),
  ('tag NOT IN (SELECT nullif(id, 3) FROM small)'),
  ('(tag NOT IN (SELECT nullif(id, 3) FROM small)) IS NULL'),
  ('tag % 7 = 3 OR tag IN (SELECT id FROM small WHERE region = ''eu'')'),
  ('(f > 2 OR tag IN (SELECT id FROM small WHERE region = ''eu'')) AND NOT (id < 5 OR tag NOT IN (SELECT id FROM small))'),
  ('tiny + 1 IN (SELECT id FROM small) IS NOT TRUE'),
  ('note NOT IN (SELECT ''note '' || id FROM small WHERE region = ''us'')')) c(condition);
-- Functions and expressions of one column of each kind.
SELECT condition, same(condition) FROM (VALUES
  ('odd(tag)'), ('odd(tag) IS NULL'), ('NOT odd(tiny)'), ('odd(dom)'), ('odd(coalesce(tag, 1))'),
  ('CASE WHEN tag > 5 THEN tag < 20 ELSE tag IS NULL END'),
  ('CASE tag WHEN 1 THEN true WHEN 2 THEN NULL ELSE false END'),
  ('extract(dow FROM at::date) = 1'), ('extract(month FROM day) = 2'), ('to_char(day, ''DD'') = ''07'''),
  ('f IS DISTINCT FROM ''NaN'''), ('f IS DISTINCT FROM 0'), ('r IS DISTINCT FROM 0.5'), ('f::text = ''-0'''), ('greatest(r, 1) = 1'),
  ('ok IS NOT DISTINCT FROM NULL'), ('ok::text = ''true'''), ('coalesce(ok, true)'), ('mood > ''low'''), ('mood::text ~ ''i'''), ('dom BETWEEN 3 AND 7 AND odd(dom)'),
  ('length(note) = 7'), ('note ~ ''[13]$'''), ('coalesce(note, '''') = '''''), ('upper(note) = note'), ('num > 1'), ('num IS DISTINCT FROM 0'),
  ('u::text ~ ''^c'''), ('u IS DISTINCT FROM ''c4ca4238-a0b9-2382-0dcc-509a6f75849b''')) c(condition);
-- Conditions that are not functions of one column.
SELECT condition, same(condition) FROM (VALUES
  ('odd(tag + tiny)'), ('(t).tag = 5'), ('t IS NOT NULL'), ('tag > random() - 1'), ('tag = (SELECT min(s.id) FROM small s WHERE s.id = t.tag)'),
  ('tableoid::regclass::text <> '''''), ('odd(tag) OR EXISTS (SELECT FROM small s WHERE s.id = t.tag)')) c(condition);

-- Each value is evaluated once, and NULL once.
SELECT evaluated('SELECT count(*) FROM l WHERE odd(tag)') AS tags, evaluated('SELECT count(*) FROM l WHERE odd(tiny)') AS tinies,
  evaluated('SELECT count(*) FROM l WHERE ok::text <> ''x''') AS oks, evaluated('SELECT * FROM l WHERE mood::text ~ ''i''') AS moods;
SELECT evaluated('SELECT count(*) FROM l WHERE tag < 10 AND odd(tag)') AS some_tags;
-- The engine's own conditions are evaluated first, in whatever order they are written.
EXPLAIN (COSTS OFF) SELECT count(*) FROM l WHERE num > 1 AND tiny = 2;
EXPLAIN (COSTS OFF) SELECT * FROM l WHERE num > 1 AND tiny = 2;
-- Many values that rarely repeat: each row is evaluated.
CREATE TABLE many (at timestamptz, x int);
INSERT INTO many SELECT timestamptz '2026-01-01 00:00Z' + i * interval '1 min', i % 3 FROM generate_series(1, 50000) i;
SELECT lanes.seal('many') > 0 AS sealed;
INSERT INTO many SELECT * FROM many;
SELECT count(*), sum(x) FROM many WHERE extract(dow FROM at::date) = 1;
SELECT evaluated('SELECT count(*) FROM many WHERE extract(dow FROM at::date) = 1');

-- An error is raised only for values of visible rows that pass the earlier conditions.
SELECT same('never_33(tag)');
SELECT same('never_33(tag + 1)');
SELECT same('tag <> 32 AND never_33(tag + 1)');
SELECT same('tag = 32 OR never_33(tag + 1)'), same('never_33(tag + 1) OR tag = 32');
SELECT count(*) FROM l WHERE never_33(tag + 1);
SELECT same('1 / (num - 1) > 0'), same('num <> 1 AND CASE WHEN true THEN 1 / (num - 1) > 0 END');
-- A condition that is left to PostgreSQL is evaluated before one that may fail.
SELECT same('tag + tiny::numeric > 1000 AND never_33(tag + 1)');

-- Groups, filters, first rows, joins.
SET lanes.vectorize = require;
SELECT tag, count(*), count(*) FILTER (WHERE odd(tiny)), bool_and(odd(tag)) FROM l WHERE tag NOT IN (SELECT id FROM small WHERE region = 'us') AND tag < 20 GROUP BY tag ORDER BY tag;
SELECT odd(tag), count(*) FROM l GROUP BY 1 ORDER BY 1;
SELECT id, tag FROM l WHERE NOT odd(tag) ORDER BY at DESC LIMIT 3;
SELECT DISTINCT ON (tag) tag, at, id FROM l WHERE odd(tag) AND tag NOT IN (SELECT id FROM small WHERE region = 'us') ORDER BY tag, at DESC LIMIT 3;
SELECT region, count(*), sum(l.id) FROM l JOIN small USING (id) WHERE CASE WHEN tag > 5 THEN odd(tag) END GROUP BY region ORDER BY region;
SELECT s.region, l.tag, l.id FROM l JOIN small s ON s.id = l.tag WHERE odd(l.tag) AND l.tag NOT IN (SELECT 7) AND l.id < 60 ORDER BY l.id;
SELECT count(*) FROM l WHERE tag NOT IN (SELECT id FROM small WHERE region = 'eu');
RESET lanes.vectorize;
SELECT region, count(*), sum(h.id) FROM h JOIN small USING (id) WHERE CASE WHEN tag > 5 THEN odd(tag) END GROUP BY region ORDER BY region;
SET lanes.vectorize = off;
SELECT same('tag NOT IN (SELECT id FROM small WHERE region = ''eu'')');
RESET lanes.vectorize;

-- Cached results are discarded when a parameter changes.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT g, c, s FROM generate_series(1, 4) g,
  LATERAL (SELECT count(*) c, sum(id) s FROM l WHERE odd(tag / g) AND tag NOT IN (SELECT id FROM small WHERE id % 5 = g)) x ORDER BY g;
SELECT g, c, s FROM generate_series(1, 4) g,
  LATERAL (SELECT count(*) c, sum(id) s FROM h WHERE odd(tag / g) AND tag NOT IN (SELECT id FROM small WHERE id % 5 = g)) x ORDER BY g;
-- Only the subquery has the parameter, and another node is above the one that has to discard its
-- results.
SELECT g, t FROM generate_series(1, 3) g, LATERAL (SELECT sum(s) t FROM
  (SELECT sum(id) s FROM l WHERE tag NOT IN (SELECT id FROM small WHERE id % 5 = g) OFFSET 0) y) x ORDER BY g;
SELECT g, t FROM generate_series(1, 3) g, LATERAL (SELECT sum(s) t FROM
  (SELECT sum(id) s FROM h WHERE tag NOT IN (SELECT id FROM small WHERE id % 5 = g) OFFSET 0) y) x ORDER BY g;
SELECT g, array_agg(id) FROM generate_series(1, 3) g, LATERAL (SELECT id FROM l WHERE odd(tag / g) ORDER BY id LIMIT 3) x GROUP BY g ORDER BY g;
SELECT g, (SELECT count(*) FROM l WHERE odd(tag) AND tag > g) FROM generate_series(46, 49) g ORDER BY g;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
PREPARE tags(int, int) AS SELECT count(*), sum(id) FROM l WHERE odd(tag / $1) AND tag NOT IN (SELECT id FROM small WHERE id > $2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE tags(1, 10);
EXECUTE tags(1, 10);
EXECUTE tags(3, 20);
EXECUTE tags(NULL, 20);
SELECT count(*), sum(id) FROM h WHERE odd(tag / 3) AND tag NOT IN (SELECT id FROM small WHERE id > 20);
RESET plan_cache_mode;
BEGIN;
DECLARE odds NO SCROLL CURSOR WITH HOLD FOR SELECT id FROM l WHERE odd(tag) AND id < 20 ORDER BY id;
FETCH 2 FROM odds;
SAVEPOINT s;
FETCH 2 FROM odds;
ROLLBACK TO s;
FETCH 1 FROM odds;
COMMIT;
FETCH 1 FROM odds;
CLOSE odds;

-- Changed and locked rows.
BEGIN;
UPDATE l SET tiny = 9 WHERE tag NOT IN (SELECT id FROM small WHERE region = 'us') AND tag < 10;
UPDATE h SET tiny = 9 WHERE tag NOT IN (SELECT id FROM small WHERE region = 'us') AND tag < 10;
DELETE FROM l WHERE odd(tag) AND tag > 40;
DELETE FROM h WHERE odd(tag) AND tag > 40;
SELECT same('tiny IN (SELECT 9) OR odd(tag)');
SELECT count(*) FROM (SELECT id FROM l WHERE odd(tiny) FOR UPDATE) s;
SELECT count(*) FROM (SELECT id FROM h WHERE odd(tiny) FOR UPDATE) s;
ROLLBACK;

-- A function that reports its argument sees no row that a security barrier hides.
CREATE FUNCTION tells(x int) RETURNS bool IMMUTABLE COST 1 LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'saw %', x; RETURN true; END $$;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM l WHERE tag NOT IN (SELECT id FROM small WHERE id <> 5) AND tag < 8 AND odd(tag);
SELECT tag FROM barrier WHERE tells(tag) LIMIT 1;
CREATE ROLE value_quals_reader;
GRANT SELECT ON l, small TO value_quals_reader;
ALTER TABLE l ENABLE ROW LEVEL SECURITY;
CREATE POLICY some_tags ON l USING (odd(tag) AND tag IN (SELECT id FROM small WHERE id BETWEEN 6 AND 9));
SET ROLE value_quals_reader;
SELECT count(*) FROM l WHERE tells(tag);
SELECT count(*) FROM (SELECT id FROM l WHERE tells(tag) OFFSET 0) s;
RESET ROLE;
-- The privilege to execute is checked.
REVOKE EXECUTE ON FUNCTION tells(int) FROM public;
SET ROLE value_quals_reader;
SELECT count(*) FROM l WHERE tells(tag);
RESET ROLE;
DROP POLICY some_tags ON l;
ALTER TABLE l DISABLE ROW LEVEL SECURITY;

-- Several processes evaluate the condition.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE small SET (parallel_workers = 0);
CREATE FUNCTION odd_anywhere(x int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN x % 2 = 1; END $$;
EXPLAIN (COSTS OFF) SELECT max(note || random()) FROM l WHERE odd_anywhere(tag) AND tag NOT IN (SELECT id FROM small WHERE region = 'eu');
SELECT max(note), count(*) FROM l WHERE odd_anywhere(tag) AND tag NOT IN (SELECT id FROM small WHERE region = 'eu');
SELECT max(note), count(*) FROM h WHERE odd_anywhere(tag) AND tag NOT IN (SELECT id FROM small WHERE region = 'eu');
EXPLAIN (COSTS OFF) SELECT max(note), count(*) FROM l WHERE odd(tag);
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- Memory of evaluations is freed while the query runs.
SELECT found, (after - before) / 1048576 < 4 AS bounded FROM (SELECT
  (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) AS before,
  (SELECT count(*) FROM many WHERE length(repeat(at::text, 100)) > 5) AS found,
  (SELECT sum(total_bytes) FROM pg_backend_memory_contexts) AS after OFFSET 0) s;
DROP VIEW barrier;
DROP TABLE l, h, small, many;
DROP ROLE value_quals_reader;
DROP SEQUENCE calls;
DROP FUNCTION same(text), evaluated(text), odd(int), odd_anywhere(int), never_33(int), tells(int);
DROP TYPE mood;
DROP DOMAIN small_number;

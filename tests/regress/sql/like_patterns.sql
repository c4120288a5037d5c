-- LIKE and ILIKE are evaluated without PostgreSQL's function where that has the same result.
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA like_patterns; SET search_path = like_patterns;
-- Distinct texts, which have no dictionary, and few texts, which have one.
CREATE TABLE texts (id int, t text) USING lanes;
INSERT INTO texts SELECT i, CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'ÄRGER ' || i WHEN 3 THEN 'ärger ' || i
  WHEN 4 THEN 'KELVIN ' || chr(8490) || i WHEN 5 THEN 'Istanbul ' || chr(304) || i WHEN 6 THEN 'a%b_c\d' || i WHEN 7 THEN repeat('Long Text ', 30) || i
  WHEN 8 THEN upper(md5(i::text)) ELSE md5(i::text) || '@[`{' END FROM generate_series(1, 6000) i;
CREATE TABLE few USING lanes AS SELECT id, left(t, 9) AS t FROM texts;
CREATE TABLE heap_texts USING heap AS TABLE texts;
CREATE TABLE heap_few USING heap AS TABLE few;
CREATE TABLE pattern (p text);
INSERT INTO pattern VALUES ('%ab%'), ('%AB%'), ('%ä%'), ('%Ä%'), ('%k%'), ('%' || chr(8490) || '%'), ('%i%'), ('%I%'), ('%ı%'), ('%'), ('%%'), (''), ('a%'), ('%C'),
  ('%_B%'), ('%t l%'), ('%T\%b%'), ('%a\%B%'), ('%\\D%'), ('%long text %7%'), ('%g text long%'), ('%@[`{%'), ('_%'), ('%' || repeat('LONG TEXT ', 20) || '%');
CREATE FUNCTION pg_temp.differences(operator text, collation_name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE p text; lanes_ids int[]; heap_ids int[]; result text := ''; kind text; tested int := 0;
BEGIN
    FOREACH kind IN ARRAY ARRAY['texts', 'few'] LOOP
        FOR p IN SELECT * FROM pattern LOOP
            EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %I WHERE t %s %L COLLATE %I', kind, operator, p, collation_name) INTO lanes_ids;
            EXECUTE format('SELECT array_agg(id ORDER BY id) FROM %I WHERE t %s %L COLLATE %I', 'heap_' || kind, operator, p, collation_name) INTO heap_ids;
            tested := tested + 1;
            IF lanes_ids IS DISTINCT FROM heap_ids THEN result := result || ' ' || p; END IF;
        END LOOP;
    END LOOP;
    RETURN tested || ' patterns agree but for:' || result;
END $$;
SET lanes.vectorize = require;
EXPLAIN (COSTS OFF) SELECT id FROM texts WHERE t ILIKE '%ab%';
SET lanes.vectorize = on;
SELECT operator, name, pg_temp.differences(operator, name)
  FROM unnest(ARRAY['LIKE', 'NOT LIKE', 'ILIKE', 'NOT ILIKE']) operator, unnest(ARRAY['default', 'C']) name ORDER BY 2, 1;
-- In Turkish the lower case of I is not i. The server may have no such collation.
DO $$ BEGIN
    CREATE COLLATION turkish (provider = icu, locale = 'tr');
    IF pg_temp.differences('ILIKE', 'turkish') NOT LIKE '%for:' THEN RAISE 'turkish: %', pg_temp.differences('ILIKE', 'turkish'); END IF;
    IF pg_temp.differences('NOT ILIKE', 'turkish') NOT LIKE '%for:' THEN RAISE 'turkish: %', pg_temp.differences('NOT ILIKE', 'turkish'); END IF;
EXCEPTION WHEN feature_not_supported OR undefined_object THEN NULL;
END $$;
-- Errors stay.
SELECT count(*) FROM texts WHERE t ILIKE '%A\';
SELECT count(*) FROM texts WHERE t LIKE '%A\';
-- The pattern of a parameter.
PREPARE found(text) AS SELECT count(*) FROM texts WHERE t ILIKE $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE found('%ÄRGER%'); EXECUTE found('%LONG%'); EXECUTE found(NULL);
SELECT p, (SELECT count(*) FROM texts WHERE t ILIKE p) FROM (VALUES ('%LONG%'), ('%lVi%')) v(p);
SET client_min_messages = warning;
DROP SCHEMA like_patterns CASCADE;

-- Regular expressions are tested without PostgreSQL's function where that has the same result.
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA regex_patterns; SET search_path = regex_patterns;
-- Distinct texts, which have no dictionary, and few texts, which have one.
CREATE TABLE texts (id int, t text, v varchar(60)) USING lanes;
INSERT INTO texts SELECT i, t, left(t, 60) FROM (SELECT i, CASE i % 12 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'ÄRGER ' || i WHEN 3 THEN E'GET /a\n' || i || E'\t_x '
  WHEN 4 THEN 'KELVIN ' || chr(8490) || i WHEN 5 THEN 'Istanbul ' || chr(304) || i WHEN 6 THEN 'a.b-c_d@e' || i || '.org' WHEN 7 THEN repeat('Long Text ', 30) || i
  WHEN 8 THEN upper(md5(i::text)) WHEN 9 THEN 'digits ' || chr(1635) || chr(178) ELSE md5(i::text) || ' status=' || i % 600 END AS t FROM generate_series(1, 6000) i) q;
CREATE TABLE few USING lanes AS SELECT id, left(t, 9) AS t, v FROM texts;
CREATE TABLE heap_texts USING heap AS TABLE texts;
CREATE TABLE heap_few USING heap AS TABLE few;
CREATE TABLE pattern (p text);
INSERT INTO pattern VALUES ('ab'), ('^ab'), ('[0-9]{3}$'), ('status=(404|5[0-9]{2})$'), ('^GET .a'), ('^GET /a.[0-9]+'), ('^[^0-9]*$'), ('^\d+$'), ('\d\d\d\D'), ('^\w+$'), ('\s_'), ('\S\s\S'),
  ('^[\w.-]+@[\w.-]+\.org$'), ('^[[:alpha:]]+ '), ('[[:space:]]_x'), ('^[[:alnum:]]{32} status'), ('(Long Text ){25}'), ('k'), ('i'), ('I'), ('(a|b|c){4,}'), ('a+?b??c*?'), ('^$'), ('^.?$'), ('g$|^s'), ('[a-]'), ('[-a]z'),
  -- These are left to PostgreSQL.
  ('(a)\1'), ('\mLong'), ('(?i)long'), ('^(?=a)'), ('***=a.b'), ('a{300}?|b'), ('[[:upper:]]{9}'), ('ä'), ('Ä|é'), (''), ('a||b'), ('[]a]'), ('\x61b'), ('[[=a=]]b');
CREATE FUNCTION pg_temp.ids(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE ids text;
BEGIN
    EXECUTE query INTO ids;
    RETURN ids;
EXCEPTION WHEN invalid_regular_expression THEN
    RETURN SQLERRM;
END $$;
CREATE FUNCTION pg_temp.differences(operator text, collation_name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE p text; kind text; result text := ''; tested int := 0; query text := 'SELECT array_agg(id ORDER BY id) FROM %I WHERE %I %s %L COLLATE %I';
BEGIN
    FOREACH kind IN ARRAY ARRAY['texts', 'few'] LOOP
        FOR p IN SELECT * FROM pattern LOOP
            tested := tested + 2;
            IF pg_temp.ids(format(query, kind, 't', operator, p, collation_name)) IS DISTINCT FROM pg_temp.ids(format(query, 'heap_' || kind, 't', operator, p, collation_name))
               OR pg_temp.ids(format(query, kind, 'v', operator, p, collation_name)) IS DISTINCT FROM pg_temp.ids(format(query, 'heap_' || kind, 'v', operator, p, collation_name))
            THEN result := result || ' ' || p; END IF;
        END LOOP;
    END LOOP;
    RETURN tested || ' conditions agree but for:' || result;
END $$;
SET lanes.vectorize = require;
EXPLAIN (COSTS OFF) SELECT id FROM texts WHERE t ~ 'status=5\d\d$';
SET lanes.vectorize = on;
SELECT operator, name, pg_temp.differences(operator, name)
  FROM unnest(ARRAY['~', '!~', '~*', '!~*']) operator, unnest(ARRAY['default', 'C']) name ORDER BY 2, 1;
-- In Turkish the lower case of I is not i. The server may have no such collation.
DO $$ BEGIN
    CREATE COLLATION turkish (provider = icu, locale = 'tr');
    IF pg_temp.differences('~*', 'turkish') NOT LIKE '%for:' THEN RAISE 'turkish: %', pg_temp.differences('~*', 'turkish'); END IF;
    IF pg_temp.differences('!~', 'turkish') NOT LIKE '%for:' THEN RAISE 'turkish: %', pg_temp.differences('!~', 'turkish'); END IF;
EXCEPTION WHEN feature_not_supported OR undefined_object THEN NULL;
END $$;
-- Errors stay.
SELECT count(*) FROM texts WHERE t ~ 'a{3,2}';
SELECT count(*) FROM texts WHERE t ~ '(a';
-- SIMILAR TO becomes a regular expression. So may a parameter, and a function's argument.
SELECT (SELECT count(*) FROM texts WHERE t SIMILAR TO '%status=5[0-9][0-9]'), (SELECT count(*) FROM heap_texts WHERE t SIMILAR TO '%status=5[0-9][0-9]');
PREPARE found(text) AS SELECT count(*) FROM texts WHERE t ~ $1;
EXECUTE found('status=5\d\d$');
SET plan_cache_mode = force_generic_plan;
EXECUTE found('status=5\d\d$'); EXECUTE found('(a)\1'); EXECUTE found(NULL);
SELECT p, (SELECT count(*) FROM texts WHERE t ~ p) FROM (VALUES ('^Long'), ('[0-9]$')) v(p);
SELECT t ~ '^a' AS is_a, count(*), count(*) FILTER (WHERE t ~* 'STATUS') FROM texts GROUP BY 1 ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA regex_patterns CASCADE;

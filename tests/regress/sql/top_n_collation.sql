-- requires: icu
-- The first rows of an order by texts of a collation of ICU: a deterministic one, and one whose equal texts may differ.
CREATE COLLATION regress_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE h (id int, t text COLLATE "en-x-icu", u text COLLATE regress_any_case, c char(6) COLLATE regress_any_case) USING heap;
INSERT INTO h SELECT i, w, w, rpad(w, i % 4) FROM (SELECT i, (array['b', 'B', 'a', 'A', NULL, '', 'a b', 'ab', 'Ab', 'é', 'É', 'z'])[i % 12 + 1] AS w FROM generate_series(1, 5000) i) q;
CREATE TABLE l (LIKE h) USING lanes;
INSERT INTO l SELECT * FROM h;
ANALYZE l, h;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'l'; SET regress.heap_tables = 'h';
CREATE FUNCTION same(query text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.same_order(query, 'LanesTopN') $$;
EXPLAIN (COSTS OFF) SELECT id FROM l ORDER BY u, id LIMIT 5;
SELECT u, id FROM l ORDER BY u DESC NULLS LAST, id LIMIT 5;
SELECT DISTINCT same(format('SELECT id FROM l ORDER BY %s %s, id LIMIT %s', k, d, n))
FROM unnest(array['t', 'u', 'c', 't COLLATE "C"', 't COLLATE regress_any_case']) k, unnest('{ASC, DESC, ASC NULLS FIRST}'::text[]) d, unnest('{1, 40, 2000}'::int[]) n;
SELECT lanes.seal('l') > 0 AS sealed;
SELECT DISTINCT same(format('SELECT id FROM l ORDER BY %s %s, id LIMIT %s', k, d, n))
FROM unnest(array['t', 'u', 'c', 't COLLATE "C"', 't COLLATE regress_any_case']) k, unnest('{ASC, DESC, ASC NULLS FIRST}'::text[]) d, unnest('{1, 40, 2000}'::int[]) n;
-- Groups of equal texts that differ are one.
SELECT pg_temp.same('SELECT count(*) FROM l GROUP BY u');
SELECT pg_temp.same('SELECT lower(u COLLATE "C"), count(*) FROM l GROUP BY 1');
DROP TABLE l, h;
DROP FUNCTION same(text);
DROP COLLATION regress_any_case;

-- Numerics that fit into integers are computed as such, with PostgreSQL's results to the last digit.
CREATE TABLE l (g int, s text, i int, p numeric(12,2), q numeric(6,3), u numeric, big numeric, odd numeric, none numeric) USING lanes;
INSERT INTO l SELECT i % 700, 'k' || i % 3, i % 50 - 20, (i::bigint * 104729 % 10000000) / 100.0 - 30000, (i % 4001) / 8.0, CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i % 1000 / 10.0 WHEN 2 THEN i % 77 WHEN 3 THEN (i % 1003)::numeric / 1000 ELSE -i END,
  (i::numeric - 15000) * 99999999999999.0001, i, NULL FROM generate_series(0, 29999) i;
-- The last rows have numbers that are no decimals, beside others that are.
INSERT INTO l SELECT 1000 + i % 6, 'odd', i, i, i % 100, (ARRAY['1e-30', '1.5', '1.50', '123456789012345678901234567890', '-0.000000000000000001', '0'])[1 + i % 6]::numeric, 1, (ARRAY['NaN', 'Infinity', '-Infinity', '2.5', NULL, '0.00'])[1 + i % 6]::numeric, NULL FROM generate_series(0, 2999) i;
CREATE TABLE h USING heap AS TABLE l;
CREATE FUNCTION differ(calls text, keys text, condition text DEFAULT 'true') RETURNS TABLE (groups bigint, differ bigint) LANGUAGE plpgsql AS $$
BEGIN RETURN QUERY EXECUTE format('WITH l AS MATERIALIZED (SELECT (ROW(%1$s, %2$s))::text AS r FROM l WHERE %3$s GROUP BY %1$s), h AS MATERIALIZED (SELECT (ROW(%1$s, %2$s))::text AS r FROM h WHERE %3$s GROUP BY %1$s)
  SELECT (SELECT count(*) FROM l), (SELECT count(*) FROM (TABLE l EXCEPT ALL TABLE h) x) + (SELECT count(*) FROM (TABLE h EXCEPT ALL TABLE l) x)', keys, calls, condition); END $$;
CREATE FUNCTION calls() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s(%s)', f, c), ', ') FROM unnest(ARRAY['sum', 'avg']) f, unnest(ARRAY['p', 'q', 'u', 'big', 'odd', 'none', '-u', '+p', 'p * q', 'p * (1 - q) * (1 + q)', 'u - p + 3.25', 'u * i', 'p + g',
    'CASE WHEN i > 0 THEN p WHEN i < -10 THEN u ELSE 0 END', 'CASE WHEN i > 0 THEN q END', 'coalesce(u, q, 1.0000)', 'coalesce(none, none)', 'big * big * big', 'u / 3']) c $$;
CREATE FUNCTION extremes() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('trim_scale(%s(%s))', f, c), ', ') FROM unnest(ARRAY['min', 'max']) f, unnest(ARRAY['p', 'u', 'big', 'odd', 'none', 'p * q', 'u - p']) c $$;
SET lanes.vectorize = require;
SELECT * FROM differ(calls(), 'g');
SELECT * FROM differ(calls(), 's');
SELECT * FROM differ(calls(), 'g', 'p > 0');
SELECT * FROM differ(extremes(), 'g');
SELECT * FROM differ(extremes(), 's');
SELECT * FROM differ('count(*), sum(p) FILTER (WHERE q > 20.5), avg(u) FILTER (WHERE u < 5)', 'g');
-- Without groups, and the scale of each result.
SELECT sum(p), avg(p), sum(q), sum(u), min(p), max(q), sum(none), count(u), count(none) FROM l;
SELECT sum(p), avg(p), sum(q), sum(u), min(p), max(q), sum(none), count(u), count(none) FROM h;
SELECT g, sum(u), avg(u), min(u), max(u) FROM l WHERE g >= 1000 GROUP BY g ORDER BY g;
SELECT g, sum(u), avg(u), min(u), max(u) FROM h WHERE g >= 1000 GROUP BY g ORDER BY g;
SELECT g, sum(odd), avg(odd), min(odd), max(odd) FROM l WHERE g >= 1000 GROUP BY g ORDER BY g;
SELECT g, sum(odd), avg(odd), min(odd), max(odd) FROM h WHERE g >= 1000 GROUP BY g ORDER BY g;
SELECT sum(p), min(u) FROM l WHERE p > 1e9;
-- Conditions: each comparison, both sides, other scales, numbers that are no decimals, NULL.
CREATE FUNCTION counts(condition text) RETURNS TABLE (l bigint, is_same bool) LANGUAGE plpgsql AS $$
DECLARE l bigint; h bigint; BEGIN EXECUTE format('SELECT count(*) FROM l WHERE %s', condition) INTO l; EXECUTE format('SELECT count(*) FROM h WHERE %s', condition) INTO h; RETURN QUERY SELECT l, l = h; END $$;
SELECT c, counts(c) FROM unnest(ARRAY['p > 0', 'p >= 100.005', 'p = -29895.27', 'p <> 0.00', '12.5 < q', 'q <= 12.5000', 'p < q', 'p * 2 - q > u', 'u = 1.5', 'u < 1e-20', 'odd > 29000', 'odd = ''NaN''', 'odd < ''Infinity''', 'NOT (u > 3)', 'u > 3 OR u IS NULL', 'p > NULL',
  'q BETWEEN 1.125 AND 2.25', 'q IN (1.125, 2.25)', 'coalesce(u, -1) < 0', 'CASE WHEN i > 0 THEN p ELSE u END > 5', 'i < q', 'big > 1e18', 'p > (SELECT max(v) / 3 FROM (VALUES (30000.5), (2)) v(v))']) c;
-- A branch that a row does not take is not computed: no division by zero in the general form either.
SELECT sum(CASE WHEN i <> 0 THEN p / i ELSE 0 END) = (SELECT sum(CASE WHEN i <> 0 THEN p / i ELSE 0 END) FROM h) FROM l;
SELECT sum(p / i) FROM l;
-- Parameters, also of generic plans.
PREPARE above(numeric, numeric) AS SELECT count(*), sum(p * $2) FROM l WHERE q > $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE above(12.5, 2);
EXECUTE above(12.50001, 1.10);
EXECUTE above('NaN', 1);
EXECUTE above(12.5, 'NaN');
EXECUTE above(NULL, NULL);
SELECT count(*), sum(p * 1.10) FROM h WHERE q > 12.50001;
DEALLOCATE above;
-- What may fail is evaluated for the rows that come to it alone.
PREPARE root(numeric) AS SELECT count(*), sum(p) FROM l WHERE s = 'none' AND p > sqrt($1);
EXECUTE root(-1);
EXECUTE root(4);
DEALLOCATE root;
CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
PREPARE bounded(numeric) AS SELECT count(*), sum(p) FROM l WHERE s = 'none' AND p > $1::positive * 2;
EXECUTE bounded(-1);
DEALLOCATE bounded; DROP DOMAIN positive;
RESET plan_cache_mode;
-- By workers, and over sealed rows: the states of workers are PostgreSQL's own.
CREATE TABLE many (s text, p numeric(12,2), u numeric, odd numeric) USING lanes;
INSERT INTO many SELECT s, p, u, odd FROM l, generate_series(1, 8);
CREATE TABLE heap_many USING heap AS TABLE many;
SELECT lanes.seal('many');
ANALYZE many;
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF, VERBOSE) SELECT s, sum(p), avg(u), max(odd), stddev(p) FROM many GROUP BY s;
CREATE TABLE of_lanes AS SELECT s, sum(p) AS a, avg(p) AS b, sum(u) AS c, avg(u) AS d, sum(odd) AS e, avg(odd) AS f, min(p) AS g, max(odd) AS h, stddev(p) AS i, variance(u) AS j, count(odd) FROM many GROUP BY s;
SET lanes.vectorize = off; SET max_parallel_workers_per_gather = 0;
CREATE TABLE of_heap AS SELECT s, sum(p) AS a, avg(p) AS b, sum(u) AS c, avg(u) AS d, sum(odd) AS e, avg(odd) AS f, min(p) AS g, max(odd) AS h, stddev(p) AS i, variance(u) AS j, count(odd) FROM heap_many GROUP BY s;
SELECT count(*), count(*) FILTER (WHERE of_lanes::text = of_heap::text) AS same FROM of_lanes JOIN of_heap USING (s);
RESET ALL;
-- Sealed rows, some of which have dictionaries; many groups and few; sums of a vector that fit 64 bits and that do not.
SET max_parallel_workers_per_gather = 0; SET lanes.vectorize = require;
SELECT lanes.seal('l');
SELECT * FROM differ(calls() || ', sum(big * 1000), sum(p * 4194304), sum(q * 100000000)', 'g');
SELECT * FROM differ(calls() || ', sum(big * 1000), sum(p * 4194304), sum(q * 100000000)', 's');
SELECT * FROM differ(calls() || ', sum(big * 1000), sum(p * 4194304), sum(q * 100000000)', 'i % 7');
SELECT * FROM differ(calls(), 's, i', 'p > 0 AND q < 300');
SELECT * FROM differ(extremes(), 's');
SELECT sum(p), avg(p), sum(q), sum(u), min(p), max(q), sum(none), count(u), count(none) FROM l;
SELECT c, counts(c) FROM unnest(ARRAY['p > 0', 'p = -29895.27', 'q <= 12.5000', 'p * 2 - q > u', 'u = 1.5', 'odd = ''NaN''', 'q BETWEEN 1.125 AND 2.25']) c;
RESET ALL;
DROP FUNCTION differ, calls, extremes, counts; DROP TABLE l, h, many, heap_many, of_lanes, of_heap;

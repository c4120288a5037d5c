-- Aggregates of pairs (correlation, covariance, regression) and of bits: PostgreSQL's own results, to the last bit.
SET default_table_access_method = lanes; SET max_parallel_workers_per_gather = 0; SET extra_float_digits = 3;
CREATE SCHEMA pair_aggregate; SET search_path = pair_aggregate;
CREATE TABLE sample (g int, s text, y float8, x float8, r real, i2 int2, i4 int4, i8 int8, same float8) WITH (order_by = 'g');
INSERT INTO sample SELECT i % 50, 's' || i % 7, CASE WHEN i % 13 = 0 THEN NULL ELSE sin(i) * 100 END, CASE WHEN i % 17 = 0 THEN NULL ELSE cos(i * 0.7) + i % 5 END, i / 7.0,
        (i * 7919 % 65536 - 32768)::int2, NULLIF(i * 7919, 7919 * 44), (i::int8 << 33) - i, 1.5 FROM generate_series(1, 6000) i;
SELECT lanes.seal('sample');
-- Groups of one pair, of none, and of numbers that are not finite.
INSERT INTO sample VALUES (100, 'a', 1, 2, 1, -1, -1, -1, 1.5), (101, 'a', NULL, 2, 1, NULL, NULL, NULL, 1.5), (102, 'b', 'NaN', 1, 1, 1, 1, 1, 1.5), (102, 'b', 1, 2, 1, 2, 2, 2, 1.5),
    (103, 'b', 'Infinity', 1, 1, 1, 1, 1, 1.5), (103, 'b', 1, 2, 1, 3, 3, 3, 1.5), (104, 'c', 1, 1, 1, 1, 1, 1, 1.5), (104, 'c', 2, '-Infinity', 1, 1, 1, 1, 1.5);
DELETE FROM sample WHERE g = 7;
CREATE TABLE sample_heap USING heap AS TABLE sample;
CREATE TABLE dim (g int, name text) USING heap;
INSERT INTO dim SELECT i, 'd' || i % 4 FROM generate_series(1, 40) i;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'sample';
SELECT string_agg(f || '(y, x) AS ' || f, ', ') AS all_of FROM unnest(ARRAY['regr_count', 'regr_sxx', 'regr_syy', 'regr_sxy', 'regr_avgx', 'regr_avgy', 'regr_r2', 'regr_slope', 'regr_intercept', 'covar_pop', 'covar_samp', 'corr']) f \gset
SELECT format($$SELECT pg_temp.same('SELECT %s FROM sample')$$, :'all_of') \gexec
SELECT format($$SELECT pg_temp.same('SELECT g, %s FROM sample GROUP BY g')$$, :'all_of') \gexec
SELECT format($$SELECT pg_temp.same('SELECT s, g %% 3, %s FROM sample GROUP BY 1, 2')$$, :'all_of') \gexec
SELECT format($$SELECT pg_temp.same('SELECT %s FROM sample WHERE g > 1000')$$, :'all_of') \gexec
SELECT pg_temp.same('SELECT g, corr(y, same), regr_r2(same, x), regr_slope(y, same), regr_intercept(same, x), corr(r, i4), covar_pop(x + 1, y * 2) FILTER (WHERE i4 > 0) FROM sample GROUP BY g');
SELECT pg_temp.same('SELECT d.name, corr(y, x), regr_count(y, d.g), bit_or(i4) FROM sample JOIN dim d USING (g) GROUP BY 1');
SELECT pg_temp.same('SELECT g, corr(y, x) AS c FROM sample GROUP BY g HAVING regr_count(y, x) > 50 ORDER BY c DESC LIMIT 5');
SELECT pg_temp.same('SELECT max(c) FROM (SELECT g, covar_samp(y, x) AS c FROM sample GROUP BY g) q');
SELECT pg_temp.same('SELECT corr(DISTINCT y, x) FROM sample');
SELECT pg_temp.same('SELECT g, bit_and(i2), bit_or(i2), bit_xor(i2), bit_and(i4), bit_or(i4), bit_xor(i4), bit_and(i8), bit_or(i8), bit_xor(i8) FROM sample GROUP BY g');
SELECT pg_temp.same('SELECT bit_and(i2), bit_or(i4), bit_xor(i8), bit_xor(DISTINCT i4 % 9), bit_or(i4 & 255) FILTER (WHERE s = ''s1'') FROM sample');
SELECT pg_temp.same('SELECT bit_and(i2), bit_or(i4), bit_xor(i8) FROM sample WHERE g = 101');
-- Finite numbers whose sums are not.
INSERT INTO sample VALUES (200, 'z', 1e200, 1, 1, 1, 1, 1, 1), (200, 'z', -1e200, 2, 1, 1, 1, 1, 1);
INSERT INTO sample_heap TABLE sample EXCEPT ALL TABLE sample_heap;
SELECT pg_temp.same('SELECT corr(y, x) FROM sample WHERE g = 200');
SELECT pg_temp.same('SELECT regr_avgy(y, x) FROM sample WHERE g >= 100');
SELECT pg_temp.same('SELECT g, regr_count(y, x) FROM sample WHERE g >= 100 GROUP BY g');
DELETE FROM sample WHERE g = 200; DELETE FROM sample_heap WHERE g = 200;
-- Workers hand over the moments, which PostgreSQL combines in some order.
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT format($$SELECT pg_temp.nodes('SELECT g, %s, bit_and(i4), bit_xor(i8) FROM sample GROUP BY g')$$, :'all_of') \gexec
SET extra_float_digits = -7;
SELECT format($$SELECT pg_temp.same('SELECT g, %s, bit_and(i4), bit_xor(i8) FROM sample WHERE g < 50 GROUP BY g')$$, :'all_of') \gexec
SET client_min_messages = warning;
DROP SCHEMA pair_aggregate CASCADE;

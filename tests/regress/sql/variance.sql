-- Variances of integers: numeric, exact, and equal to PostgreSQL's own to the last digit.
CREATE TABLE l (g int, i2 int2, i4 int4, wide int4, same int4, none int4, i8 bigint, huge bigint) USING lanes;
INSERT INTO l SELECT i % 700, i * 7919 % 65536 - 32768, (i::bigint * 104729 % 1000)::int, ((i::bigint * 48271) % 4294967296 - 2147483648)::int, 5, NULL, i, CASE i % 3 WHEN 0 THEN 9223372036854775807 - i WHEN 1 THEN -9223372036854775808 + i ELSE i END FROM generate_series(0, 49999) i;
INSERT INTO l (g, i2, i4, wide, same, none, i8) VALUES (-1, 3, 4, 2147483647, 5, NULL, 1), (-2, 32767, 0, 2147483647, 5, NULL, 1), (-2, -32768, 1, -2147483648, 5, NULL, 1), (-3, 1, 1, 1, 1, NULL, 1), (-3, 2, 2, 2, 2, NULL, 1), (-3, NULL, 4, NULL, NULL, NULL, 1);
CREATE TABLE h USING heap AS TABLE l;
CREATE FUNCTION calls() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s(%s)', f, c), ', ') FROM unnest(ARRAY['variance', 'var_samp', 'var_pop', 'stddev', 'stddev_samp', 'stddev_pop']) f, unnest(ARRAY['i2', 'i4', 'wide', 'same', 'none', 'i8', 'huge']) c $$;
CREATE FUNCTION differ(keys text) RETURNS TABLE (groups bigint, differ bigint) LANGUAGE plpgsql AS $$
BEGIN RETURN QUERY EXECUTE format('WITH l AS MATERIALIZED (SELECT (ROW(%1$s, %2$s))::text AS r FROM l GROUP BY %1$s), h AS MATERIALIZED (SELECT (ROW(%1$s, %2$s))::text AS r FROM h GROUP BY %1$s)
  SELECT (SELECT count(*) FROM l), (SELECT count(*) FROM (TABLE l EXCEPT TABLE h) x) + (SELECT count(*) FROM (TABLE h EXCEPT TABLE l) x)', keys, calls()); END $$;
SET lanes.vectorize = require;
SELECT * FROM differ('g');
SELECT * FROM differ('i4');
SELECT * FROM differ('same');
SELECT * FROM differ('g % 7 = 3');
SELECT variance(i2), stddev(i4), var_pop(wide), stddev_samp(same), stddev_pop(none) FROM l;
SELECT variance(i2), stddev(i4), var_pop(wide), stddev_samp(same), stddev_pop(none) FROM h;
SELECT variance(i2), var_pop(i2), stddev(i4), stddev_pop(i4), stddev(i4) FILTER (WHERE i4 > 1000) FROM l WHERE g = -1;
SELECT variance(i8), stddev_pop(i8), variance(huge), stddev(huge), var_pop(huge) FILTER (WHERE g = -1), max(huge), min(huge) FROM l;
SELECT variance(i8), stddev_pop(i8), variance(huge), stddev(huge), var_pop(huge) FILTER (WHERE g = -1), max(huge), min(huge) FROM h;
DROP FUNCTION differ, calls; DROP TABLE l, h;

-- Keys, arguments and aggregates that PostgreSQL computes row by row within LanesAggregate.
SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'iso_8601';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE l (id int, k int, s text, c text COLLATE "C", bp char(4), u uuid, b bool, i2 int2, i8 int8, f4 float4, f float8, n numeric, j jsonb, a int[], d date, ts timestamptz, v interval) USING lanes;
CREATE FUNCTION rows_of(first int, last int) RETURNS SETOF l LANGUAGE sql AS $$
    SELECT i, i % 10, CASE WHEN i % 11 > 0 THEN 'Text ' || repeat('x', i % 7) || chr(65 + i % 5) END, 'c' || i % 3, 'b' || i % 2, md5((i % 5)::text)::uuid,
        CASE WHEN i % 8 > 0 THEN i % 3 = 0 END, i % 300 - 150, CASE WHEN i % 6 > 0 THEN i * 1125000000::int8 END, i % 31, CASE WHEN i % 13 > 0 THEN i % 101 END,
        CASE WHEN i % 9 > 0 THEN (i % 7)::numeric / CASE WHEN i % 2 = 0 THEN 4 ELSE 1 END END, CASE WHEN i % 5 > 0 THEN jsonb_build_object('a', i % 4, 'b', 'x' || i % 3) END,
        CASE WHEN i % 4 > 0 THEN ARRAY[i % 3, NULL] END, '2024-02-27'::date + i % 5, '2024-03-30 22:17:05+00'::timestamptz + i * interval '7 min',
        i % 4 * interval '1 hour' FROM generate_series(first, last) i $$;
INSERT INTO l SELECT * FROM rows_of(1, 3000);
SELECT lanes.seal('l') > 0 AS sealed;
INSERT INTO l SELECT * FROM rows_of(3001, 5000);
CREATE TABLE h (LIKE l);
INSERT INTO h SELECT * FROM l;
CREATE TABLE dim (k int, name text);
INSERT INTO dim SELECT i, 'name ' || i % 4 FROM generate_series(0, 8) i;
ANALYZE l; ANALYZE h; ANALYZE dim;
SET regress.lanes_tables = 'l';
SET regress.heap_tables = 'h';
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare

-- Numbers that PostgreSQL computes.
SELECT pg_temp.same('SELECT k, avg(length(s)), sum(octet_length(c)), max(ascii(s)) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT length(s), count(*), sum(id) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT k, sum(length(s) * 2 + i2), max(power(f, 2)), min(sqrt(f)) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT sum(extract(epoch FROM v)::int), count(upper(s)), count(nullif(k, 3)), sum(nullif(k, 3)), sum(greatest(k, i2, 5)), sum(least(f, 7)) FROM l');
SELECT pg_temp.same('SELECT k, date_part(''hour'', ts), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT sum(id) FILTER (WHERE length(s) > k), count(*) FILTER (WHERE s LIKE ''%'' || k || ''%'' OR f > i2) FROM l');
SELECT pg_temp.same('SELECT bool_and(length(s) > k - 10), bool_or(s < c), every(b IS DISTINCT FROM (k > 3)) FROM l');
SELECT pg_temp.same('SELECT count(*) FROM l WHERE length(s) > k AND (i2 + 1)::text <> s');

-- CASE and COALESCE.
SELECT pg_temp.same('SELECT sum(CASE WHEN f > 50 THEN f ELSE 0 END), avg(coalesce(i8, 0)), sum(coalesce(f, i2, 1)), count(CASE WHEN b THEN 1 END) FROM l');
-- NULLIF, GREATEST and LEAST of numbers are choices: with NULLs, NaN, zeros of both signs, other types beside the first, and times.
SELECT pg_temp.same('SELECT k, sum(nullif(i2, 7)), count(nullif(f, 0)), avg(nullif(i8, i2)), max(nullif(d, ''2024-02-29'')), sum(coalesce(nullif(f, 50), -1)) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT k, sum(greatest(f, 30)), sum(least(i2, k)), max(greatest(f, i8)), min(least(f4, f, 3)), count(greatest(i8, NULL)), max(least(ts, ''2024-04-01'')) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT greatest(i2, k, id % 7), least(f, f4), nullif(k, 3), count(*) FROM l GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT sum(greatest(i2, k, id % 7, 5)), sum(greatest(n, 1)), max(greatest(s, c)) FROM l');
SELECT pg_temp.same('SELECT min(greatest(x, y))::text, max(least(x, y))::text, count(nullif(x, y)), max(greatest(y, x)) FROM (SELECT CASE i2 % 3 WHEN 0 THEN float8 ''-0'' ELSE 0 END AS x, CASE WHEN k = 3 THEN float8 ''NaN'' ELSE f * 0 END AS y FROM l WHERE i2 > 140) q');
SELECT pg_temp.same('SELECT count(*) FROM l WHERE greatest(f, 20) > 60 AND nullif(k, 4) < 8 AND least(i8, 100) IS NOT NULL');
SELECT pg_temp.same('SELECT sum(greatest(i2 / (k - 3), 0)) FROM l');
SELECT pg_temp.same('SELECT CASE WHEN k < 3 THEN 1 WHEN b THEN 2 WHEN s IS NULL THEN NULL ELSE k END, count(*) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT CASE k WHEN 1 THEN ''one'' WHEN 2 THEN s ELSE c END, count(*), max(CASE k WHEN 1 THEN id WHEN 2 THEN -id END) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT sum(CASE WHEN k <> 0 THEN 100 / k END), sum(CASE WHEN k = 0 THEN 0 ELSE 100 / k END) FROM l');
SELECT pg_temp.same('SELECT sum(CASE WHEN k < 100 THEN k ELSE 1 / (k - k) END), sum(coalesce(k, 1 / (k - k))) FROM l');
SELECT pg_temp.same('SELECT sum(CASE WHEN k > 0 THEN 1 / (k - k) ELSE 0 END) FROM l');
SELECT pg_temp.same('SELECT sum(CASE WHEN k > 100 THEN length(repeat(''x'', (SELECT -1))) ELSE k END) FROM l');
-- CASE whose results are constants, and CASE that compares one expression.
SELECT pg_temp.same('SELECT CASE WHEN f > 50 THEN ''high'' WHEN f > 20 THEN ''mid'' WHEN b THEN ''high'' END, count(*), sum(id) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT CASE k WHEN 1 THEN ''one'' WHEN NULL THEN ''never'' WHEN 2 THEN ''two'' ELSE ''many'' END, CASE WHEN b THEN DATE ''2024-01-01'' ELSE DATE ''2024-01-02'' END, count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT CASE s WHEN ''Text A'' THEN 1.5 WHEN ''Text xB'' THEN NULL ELSE 2.50 END, max(CASE c WHEN ''c1'' THEN k WHEN ''c2'' THEN -k END) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT CASE WHEN k > 4 THEN ''a'' ELSE ''b'' END AS x, CASE k % 3 WHEN 0 THEN ''zero'' ELSE ''other'' END AS y, count(*) FROM l GROUP BY ROLLUP (1, 2)');
SELECT pg_temp.same('SELECT CASE WHEN k > 4 THEN ''a'' ELSE ''b'' END, id, count(*) FROM l GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 10');
SELECT pg_temp.same('SELECT CASE WHEN id > 1 THEN 1.0 WHEN k IS NULL THEN 2 ELSE 1.00 END, CASE WHEN b THEN ''x''::bpchar ELSE ''x  ''::bpchar END, CASE WHEN k > 4 THEN -0.0::float8 ELSE 0 END, count(*) FROM l GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT CASE k WHEN CASE id % 2 WHEN 0 THEN 1 ELSE 2 END THEN ''x'' ELSE ''y'' END, count(*) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT count(*) FROM (SELECT CASE WHEN k > 4 THEN ''a'' ELSE s END, count(*) FROM l GROUP BY 1) x');
SELECT pg_temp.same('SELECT CASE dim.k WHEN 1 THEN ''one'' ELSE ''other'' END, CASE WHEN l.f > 30 THEN ''x'' ELSE ''y'' END, count(*) FROM l JOIN dim USING (k) GROUP BY 1, 2');
-- A subquery runs only if a row takes its branch.
SELECT pg_temp.same('SELECT sum(CASE WHEN k > 100 THEN (SELECT 1 / count(*) FROM dim WHERE k > 100) ELSE k END), sum(coalesce(k, (SELECT 1 / count(*) FROM dim WHERE k > 100))) FROM l WHERE k IS NOT NULL');
PREPARE p(float8) AS SELECT sum(CASE WHEN f > 1000 THEN sqrt($1) ELSE f END) FROM l;
SET plan_cache_mode = force_generic_plan;
EXECUTE p(-1);
RESET plan_cache_mode;

-- Keys of every type that has a hash.
SELECT pg_temp.same('SELECT lower(s), count(*), sum(id) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT substr(s, 1, 6) AS prefix, c || k, count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT extract(hour FROM ts), extract(dow FROM ts), count(*) FROM l GROUP BY 1, 2');
-- Fields of times, around changes of a zone's offset and at the infinities.
INSERT INTO l (id, ts) VALUES (5001, 'infinity'), (5002, '-infinity'), (5003, NULL), (5004, '4713-01-01 BC'), (5005, '294276-12-31');
INSERT INTO h SELECT * FROM l WHERE id > 5000;
SET timezone = 'Europe/Berlin';
SELECT pg_temp.same('SELECT extract(hour FROM ts), extract(minute FROM ts), extract(isodow FROM ts), date_part(''day'', ts), count(*) FROM l GROUP BY 1, 2, 3, 4');
SELECT pg_temp.same('SELECT extract(week FROM ts), extract(month FROM ts), extract(quarter FROM ts), extract(year FROM ts), extract(doy FROM ts), extract(decade FROM ts), extract(isoyear FROM ts), count(*) FROM l GROUP BY 1, 2, 3, 4, 5, 6, 7');
SELECT pg_temp.same('SELECT extract(hour FROM ts::timestamp), max(date_part(''hour'', ts)), min(date_part(''dow'', ts)), sum(extract(second FROM ts)) FROM l GROUP BY 1');
-- What is computed from such fields alone, and days and texts of times.
SELECT pg_temp.same('SELECT ts::date, count(*), sum(id) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT extract(year FROM ts) * 100 + extract(month FROM ts), date_trunc(''month'', ts)::date, count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT to_char(ts, ''YYYY-MM-DD''), to_char(ts, ''Dy HH24''), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT to_char(ts, ''HH24:MI''), to_char(ts, ''"ms" TZH OF''), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT to_char(ts, ''MI:SS''), to_char(ts, ''AM''), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT (ts AT TIME ZONE ''America/New_York'')::date, extract(hour FROM ts AT TIME ZONE ''Asia/Kathmandu''), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT to_char(ts::timestamp, ''IYYY-IW''), ts::timestamp::date, count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT extract(hour FROM ts) + extract(hour FROM ts AT TIME ZONE ''Asia/Kathmandu''), ts::date - ts::date, ts::date - ts::timestamp, count(*) FROM l WHERE id <= 5000 GROUP BY 1, 2, 3');
SET timezone = 'Australia/Lord_Howe';
SELECT pg_temp.same('SELECT ts::date, to_char(ts, ''HH24:MI''), count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT k, extract(hour FROM ts), extract(minute FROM ts), extract(dow FROM ts), count(*) FROM l GROUP BY 1, 2, 3, 4');
SET timezone = 'UTC';
SELECT pg_temp.same('SELECT length(s), char_length(s || ''ä日''), octet_length(s), count(*) FROM l WHERE length(s) > 5 AND octet_length(s || ''ä'') > 7 GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT round(n, 2), sum(id) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT bp, count(*) FROM l GROUP BY bp');
SELECT pg_temp.same('SELECT j ->> ''b'', (j -> ''a'')::int, count(*), sum(k) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT j, count(*) FROM l GROUP BY j');
SELECT pg_temp.same('SELECT a, v, count(*) FROM l GROUP BY a, v');
SELECT pg_temp.same('SELECT to_char(ts, ''YYYY-MM-DD''), k::text, count(*) FROM l GROUP BY 1, 2');
SELECT pg_temp.same('SELECT 1, ''x'', s, count(*) FROM l GROUP BY 1, 2, 3');
SELECT pg_temp.same('SELECT ts AT TIME ZONE ''America/New_York'' > ''2024-04-10'', count(*) FROM l GROUP BY 1');
SELECT pg_temp.same('SELECT DISTINCT n, upper(c) FROM l');
SELECT pg_temp.same('SELECT upper(c), count(*) FROM l WHERE id < 0 GROUP BY 1');
-- Equal numerics of different digits are one group.
SELECT n, count(*) FROM l WHERE n IN (0, 1) GROUP BY n ORDER BY n;

-- Aggregates whose states PostgreSQL computes.
SELECT pg_temp.same('SELECT k, min(s), max(s), min(c), max(bp), min(n), max(n), max(v) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT k, sum(n), avg(n), variance(n), stddev(i8), sum(v), avg(v) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT round(corr(f, i2)::numeric, 9), regr_count(f, k), round(regr_slope(f, i2)::numeric, 9), covar_pop(k, i2)::numeric(20, 6) FROM l');
SELECT pg_temp.same('SELECT k, bit_or(i2), bit_and(id), bit_or(i8), bool_and(b) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT array_agg(id), string_agg(s, '',''), json_agg(k), jsonb_object_agg(id, c) FROM l WHERE id < 60');
SELECT pg_temp.same('SELECT k, array_agg(id ORDER BY id) FROM l WHERE id < 60 GROUP BY k');
SELECT pg_temp.same('SELECT k, array_agg(a) FILTER (WHERE a IS NOT NULL AND id < 99) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT k, count(DISTINCT lower(s)), string_agg(DISTINCT c, '','') FROM l GROUP BY k');
SELECT pg_temp.same('SELECT min(s), max(n), sum(n), array_agg(id), corr(f, i2) FROM l WHERE id < 0');
SELECT pg_temp.same('SELECT k, max(s) FROM l WHERE id < 0 GROUP BY k');
CREATE FUNCTION longer(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN length($2) > length(coalesce($1, '')) THEN $2 ELSE $1 END $$;
CREATE AGGREGATE longest(text) (sfunc = longer, stype = text);
CREATE AGGREGATE appended(anycompatible) (sfunc = array_append, stype = anycompatiblearray, initcond = '{}');
CREATE FUNCTION strict_sum(int, int) RETURNS int STRICT IMMUTABLE LANGUAGE sql AS 'SELECT $1 + $2';
CREATE AGGREGATE from_first(int) (sfunc = strict_sum, stype = int);
SELECT pg_temp.same('SELECT k, longest(s), from_first(i2::int), cardinality(appended(id)), appended(id) FILTER (WHERE id < 30) FROM l GROUP BY k');
-- A final function that takes the types of the arguments.
CREATE FUNCTION count_any(bigint, anyelement) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE FUNCTION name_type(bigint, anyelement) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN pg_typeof($2) || ' ' || $1; END $$;
CREATE AGGREGATE type_and_count(anyelement) (sfunc = count_any, stype = bigint, initcond = 0, finalfunc = name_type, finalfunc_extra);
SELECT pg_temp.same('SELECT k, type_and_count(s), type_and_count(i2) FROM l GROUP BY k');
-- A final function that changes the state is called once by PostgreSQL.
CREATE AGGREGATE changing(int) (sfunc = int4pl, stype = int, initcond = 0, finalfunc = int4abs, finalfunc_modify = read_write);
SELECT pg_temp.same('SELECT k, changing(id) FROM l GROUP BY k');

-- A volatile function would be called again if PostgreSQL's own plan took over.
CREATE FUNCTION counting(int, int) RETURNS int VOLATILE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE AGGREGATE counted(int) (sfunc = counting, stype = int, initcond = 0);
SELECT pg_temp.same('SELECT k, counted(id) FROM l GROUP BY k');

-- Beside a join, below another aggregation, in a lateral sub-select that starts again.
SELECT pg_temp.same('SELECT d.name, lower(l.s), max(l.s), sum(length(l.s)) FROM l JOIN dim d USING (k) GROUP BY 1, 2');
SELECT pg_temp.same('SELECT d.name, sum(coalesce(l.f, 1)), max(l.c) FROM dim d LEFT JOIN l ON l.k = d.k + 5 GROUP BY 1');
SELECT pg_temp.same('SELECT d.name, min(length(d.name) + l.k) FROM l JOIN dim d USING (k) GROUP BY 1');
SELECT pg_temp.same('SELECT prefix, max(n), sum(longest) FROM (SELECT k, substr(s, 1, 6) AS prefix, count(*) AS n, max(length(s)) AS longest FROM l GROUP BY 1, 2) q GROUP BY prefix');
SELECT pg_temp.same('SELECT d.k, q.* FROM dim d, LATERAL (SELECT upper(l.s) AS u, max(l.c), sum(l.n * d.k) FROM l WHERE l.k = d.k GROUP BY 1) q');
-- What is no function of the row.
SELECT pg_temp.nodes('SELECT random() > 2, count(*) FROM l GROUP BY 1');
SELECT pg_temp.nodes('SELECT max((SELECT name FROM dim WHERE dim.k = l.k LIMIT 1)) FROM l');
SELECT pg_temp.nodes('SELECT count(l) FROM l');
-- Errors of functions are PostgreSQL's, for rows that count only.
SELECT pg_temp.same('SELECT sum((s || k)::int) FROM l');
SELECT pg_temp.same('SELECT sum(CASE WHEN id > 0 THEN length(s) ELSE s::int END) FROM l');
SELECT pg_temp.same('SELECT max(substr(c, 2)::int) FROM l WHERE c < ''d''');

-- Values that take too much memory are left to PostgreSQL's own plan, which can use the disk.
SET work_mem = '64kB';
SELECT pg_temp.hands_over('SELECT repeat(md5(id::text), 20), count(*) FROM l GROUP BY 1');
SELECT pg_temp.hands_over('SELECT k, array_agg(repeat(s, 100)) FROM l GROUP BY k');
SELECT pg_temp.same('SELECT md5(id::text), count(*) FROM l GROUP BY 1');
RESET work_mem;

-- Who may not execute a function does not execute it here.
CREATE ROLE regress_row_functions;
GRANT SELECT ON l TO regress_row_functions;
CREATE AGGREGATE secret(int) (sfunc = int4pl, stype = int, initcond = 0);
REVOKE EXECUTE ON FUNCTION secret(int) FROM public;
CREATE FUNCTION hidden(text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION hidden(text) FROM public;
SET ROLE regress_row_functions;
SELECT secret(id) FROM l;
SELECT hidden(s), count(*) FROM l GROUP BY 1;
RESET ROLE;
CREATE FUNCTION step(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
REVOKE EXECUTE ON FUNCTION step(int, int) FROM public;
CREATE AGGREGATE owned(int) (sfunc = step, stype = int, initcond = 0);
ALTER AGGREGATE owned(int) OWNER TO regress_row_functions;
SELECT owned(id) FROM l;
DROP AGGREGATE owned(int), secret(int);
DROP OWNED BY regress_row_functions;
DROP ROLE regress_row_functions;
DROP AGGREGATE changing(int), counted(int), from_first(int), longest(text), appended(anycompatible);
DROP FUNCTION counting(int, int), hidden(text), step(int, int), strict_sum(int, int), longer(text, text), rows_of(int, int);
DROP TABLE l, h, dim;

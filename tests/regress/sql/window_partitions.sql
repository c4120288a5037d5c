-- SQL's own window functions in LanesWindow: each answer is compared with PostgreSQL's own node on
-- a heap table of the same rows.
SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE TABLE h (id int, ts timestamptz, day date, s smallint, n int, b bigint, r real, x float8, k text COLLATE "C", u uuid, ok boolean, m numeric, c char(3)) USING heap;
CREATE TABLE l (LIKE h) USING lanes;
SELECT setseed(0.5);
INSERT INTO h SELECT i, '2026-01-01'::timestamptz + i / 3 * interval '1 s', '2026-01-01'::date + i % 90,
    CASE WHEN i % 7 <> 0 THEN i % 50 END, CASE WHEN i % 11 <> 0 THEN i * 37 % 1000 END, i::bigint * 1000000000000000 - 500000000000000000,
    CASE WHEN i % 13 <> 0 THEN (i % 100) * 0.1 END,
    CASE WHEN i % 17 = 0 THEN NULL WHEN i % 101 = 0 THEN 'NaN' WHEN i % 103 = 0 THEN 'Infinity' WHEN i % 107 = 0 THEN '-Infinity' WHEN i % 19 = 0 THEN '-0' WHEN i % 23 = 0 THEN 0 ELSE sin(i) * 1e6 END,
    CASE WHEN i % 29 <> 0 THEN 'key ' || i % 10 END, md5((i % 5)::text)::uuid, CASE i % 3 WHEN 0 THEN true WHEN 1 THEN false END, i * 0.01, 'c' || i % 4
  FROM generate_series(1, 3000) i;
INSERT INTO l SELECT * FROM h;
EXPLAIN (COSTS OFF) SELECT id, x - lag(x) OVER (PARTITION BY k ORDER BY ts) FROM l;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, row_number() OVER w, sum(n) FILTER (WHERE s > 3) OVER w FROM l WHERE n > 5 WINDOW w AS (PARTITION BY k, n ORDER BY ts DESC, id) ORDER BY k, n, ts DESC;
-- The rows come in the order of partitions and of order keys, so no Sort is needed.
EXPLAIN (COSTS OFF) SELECT k, ts, rank() OVER (PARTITION BY k ORDER BY ts) FROM l ORDER BY k, ts;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT avg(x) OVER (PARTITION BY k ORDER BY x DESC NULLS LAST ROWS 9 PRECEDING) FROM l;
-- A query with %t is run on both tables; the numbers of rows that differ are counted. Columns of id
-- make the order of each window total, except where ties make no difference.
CREATE FUNCTION differing(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE bad bigint; plan text; line text;
BEGIN
  plan := '';
  FOR line IN EXECUTE 'EXPLAIN ' || replace(query, '%t', 'l') LOOP plan := plan || line; END LOOP;
  IF plan NOT LIKE '%LanesWindow%' THEN RAISE 'no LanesWindow: %', query; END IF;
  EXECUTE 'CREATE TEMP TABLE found USING heap AS ' || replace(query, '%t', 'l');
  EXECUTE 'CREATE TEMP TABLE wanted USING heap AS ' || replace(query, '%t', 'h');
  SELECT count(*) INTO bad FROM ((TABLE found EXCEPT ALL TABLE wanted) UNION ALL (TABLE wanted EXCEPT ALL TABLE found)) s;
  DROP TABLE found, wanted;
  RETURN bad;
END $$;
CREATE TABLE windows (number bigint, over text) USING heap;
INSERT INTO windows SELECT row_number() OVER (), concat_ws(' ', 'PARTITION BY ' || p, 'ORDER BY ' || o) FROM unnest(array[NULL, 'k', 'k, ok', 'u, s', 'x, day']) p,
  unnest(array['id', 'ts, id', 'x, id', 'n DESC, id', 'r NULLS FIRST, b DESC NULLS LAST', 'x DESC, day NULLS FIRST, id DESC']) o;
CREATE VIEW frames AS SELECT number, frame FROM unnest(array['', 'ROWS UNBOUNDED PRECEDING', 'ROWS 3 PRECEDING', 'ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING',
  'ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING', 'ROWS BETWEEN 1 FOLLOWING AND 4 FOLLOWING', 'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING',
  'RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', 'RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING', 'GROUPS CURRENT ROW',
  'RANGE BETWEEN CURRENT ROW AND CURRENT ROW', 'ROWS BETWEEN 3 FOLLOWING AND 1 FOLLOWING', 'ROWS BETWEEN 9223372036854775807 PRECEDING AND 0 FOLLOWING']) WITH ORDINALITY AS f (frame, number);
-- Each window with some of the frames: they are few enough to be quick, and each frame is there.
CREATE VIEW pairs AS SELECT over, frame FROM windows w JOIN frames f ON (w.number + f.number) % 17 = 0;
CREATE FUNCTION ranks(over text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT id, row_number() OVER w AS a, rank() OVER w AS b, dense_rank() OVER w AS c, percent_rank() OVER w AS d, cume_dist() OVER w AS e, ntile(7) OVER w AS f,
    lag(id) OVER w AS g, lead(k, 2) OVER w AS h, lag(x, 3, 1.5) OVER w AS i, lead(n * 2, -1, 7) OVER w AS j, lag(u, 0) OVER w AS k2, lag(c) OVER w AS l, lead(m, 1, NULL) OVER w AS m,
    lag(x > 0) OVER w AS n, lead(n > 500 OR ok, 2, false) OVER w AS o
    FROM %%t WINDOW w AS (%s)', over)
$$;
SELECT over FROM windows WHERE differing(ranks(over)) <> 0;
CREATE FUNCTION frame_values(over text, frame text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT id, first_value(id) OVER w AS a, last_value(k) OVER w AS b, nth_value(x, 2) OVER w AS c, first_value(n + 1) OVER w AS d, last_value(x > n) OVER w AS d2, count(NOT ok) OVER w AS d3,
    count(*) OVER w AS e, count(x) OVER w AS f, count(k) OVER w AS g, count(*) FILTER (WHERE n > 300) OVER w AS h, sum(n) OVER w AS i, sum(b) OVER w AS j, sum(s) FILTER (WHERE ok) OVER w AS k2,
    avg(s) OVER w AS l, avg(b) OVER w AS m, min(n) OVER w AS o, max(ts) OVER w AS p, min(day) OVER w AS q, max(r) OVER w AS r, min(b - n) OVER w AS t
    FROM %%t WINDOW w AS (%s %s)', over, frame)
$$;
SELECT over, frame FROM pairs WHERE differing(frame_values(over, frame)) <> 0;
-- Floats: the same to the last bit, so they are compared as bytes. NaN has many, which nobody tells
-- apart.
CREATE FUNCTION bits(x float8) RETURNS bytea LANGUAGE sql AS $$ SELECT float8send(CASE WHEN x = 'NaN' THEN 'NaN' ELSE x END) $$;
CREATE FUNCTION floats(over text, frame text) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT id, bits(sum(x) OVER w) AS a, bits(avg(x) OVER w) AS b, bits(min(x) OVER w) AS c, bits(max(x) OVER w) AS d,
    float4send(sum(r) OVER w) AS e, bits(avg(r) OVER w) AS f, bits(sum(x * 3) FILTER (WHERE n < 500) OVER w) AS g
    FROM %%t WINDOW w AS (%s %s)', over, frame)
$$;
SELECT over, frame FROM pairs WHERE differing(floats(over, frame)) <> 0;
-- No ORDER BY: all rows of a partition are peers. Several windows of one order.
SELECT differing('SELECT id, count(*) OVER (PARTITION BY k) AS a, sum(n) OVER (PARTITION BY k ORDER BY ts, id) AS b, rank() OVER (PARTITION BY k ORDER BY ts) AS c, row_number() OVER (PARTITION BY k ORDER BY ts, id ROWS 3 PRECEDING) AS d FROM %t');
SELECT differing('SELECT id, count(*) OVER () AS a, max(x) OVER () AS b, rank() OVER () AS c FROM %t');
SELECT differing('SELECT id, row_number() OVER (ORDER BY id) + 1 AS a, n > 5 AS b FROM %t WHERE n > 5 AND id > 7');
-- Rows in the order that is claimed, for texts of any collation and NULLs on either side.
SELECT count(r), count(*) FILTER (WHERE (k, n, id) < (before_k, before_n, before_id)) AS falling FROM (
  SELECT coalesce(k, 'zzz') AS k, coalesce(n, 9999) AS n, id, r, lag(coalesce(k, 'zzz')) OVER () AS before_k, lag(coalesce(n, 9999)) OVER () AS before_n, lag(id) OVER () AS before_id
    FROM (SELECT k, n, id, rank() OVER (PARTITION BY k ORDER BY n, id) AS r FROM l OFFSET 0) s) s;
-- A condition on a rank that PostgreSQL leaves to the node; other levels above the window.
EXPLAIN (COSTS OFF) SELECT k, id FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY ts DESC, id) AS place FROM l) s WHERE place <= 2;
SELECT k, id, place FROM (SELECT k, id, row_number() OVER (PARTITION BY k ORDER BY ts DESC, id) AS place FROM l) s WHERE place <= 2;
SELECT k, id FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY n) AS place FROM l) s WHERE place < 2 AND id < 1000;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id FROM (SELECT id, row_number() OVER w AS place, count(*) OVER w AS c FROM l WINDOW w AS (PARTITION BY u ORDER BY id)) s WHERE 2 >= place AND c < 3;
SELECT id FROM (SELECT id, row_number() OVER w AS place, count(*) OVER w AS c FROM l WINDOW w AS (PARTITION BY u ORDER BY id)) s WHERE 2 >= place AND c < 3 ORDER BY id;
SELECT k, count(d), sum(d) FROM (SELECT k, n - lag(n) OVER (PARTITION BY k ORDER BY id) AS d FROM l) s GROUP BY k ORDER BY k;
EXPLAIN (COSTS OFF) SELECT count(d), sum(d), max(place) FROM (SELECT n - lag(n) OVER w AS d, row_number() OVER w AS place FROM l WINDOW w AS (PARTITION BY k ORDER BY id)) q;
SELECT differing('SELECT s, count(d), sum(d), max(place), bool_or(high) FROM (SELECT s, n - lag(n) OVER w AS d, row_number() OVER w AS place, n > 500 AS high FROM %t WINDOW w AS (PARTITION BY k ORDER BY id)) q GROUP BY s');
SELECT differing('SELECT n % 3, sum(b), count(*), max(c), min(day) FROM (SELECT n, lead(b) OVER w AS b, lag(day) OVER w AS day, row_number() OVER w AS place, count(*) OVER w AS c FROM %t WINDOW w AS (PARTITION BY k ORDER BY id)) q WHERE place <= 20 GROUP BY 1');
SELECT differing('SELECT ok, count(was) AS a, bool_and(was) AS b, count(x) FILTER (WHERE x > 1) AS c FROM (SELECT ok, lag(ok) OVER w AS was, first_value(r) OVER w AS x FROM %t WINDOW w AS (PARTITION BY s ORDER BY id DESC)) q GROUP BY ok');
EXPLAIN (COSTS OFF) SELECT k, sum(d), count(k) FROM (SELECT k, n - lag(n) OVER (PARTITION BY k ORDER BY id) AS d FROM l) q GROUP BY k;
SELECT differing('SELECT k, c, count(d), sum(d), count(*) FILTER (WHERE k < ''key 5'') AS e FROM (SELECT k, k || ''x'' AS c, n - lag(n) OVER (PARTITION BY s ORDER BY id) AS d FROM %t) q GROUP BY k, c');
SELECT differing('SELECT k, s, count(d), sum(d) AS b, count(*) FILTER (WHERE k < ''key 5'') AS e FROM (SELECT k, s, n - lag(n) OVER (PARTITION BY s ORDER BY id) AS d FROM %t) q GROUP BY k, s');
SELECT DISTINCT count(*) OVER (PARTITION BY s) FROM l ORDER BY 1 LIMIT 3;
-- Deleted and changed rows, sealed ones beside open ones.
DELETE FROM l WHERE id % 10 = 3; DELETE FROM h WHERE id % 10 = 3;
UPDATE l SET x = x + 1 WHERE id % 100 = 1; UPDATE h SET x = x + 1 WHERE id % 100 = 1;
VACUUM FREEZE l;
INSERT INTO l SELECT id + 10000, ts, day, s, n, b + 1, r, x, k, u, ok, m, c FROM h WHERE id % 3 = 0;
INSERT INTO h SELECT id + 10000, ts, day, s, n, b + 1, r, x, k, u, ok, m, c FROM h WHERE id % 3 = 0;
SELECT over FROM windows WHERE number % 4 = 1 AND (differing(ranks(over)) <> 0 OR differing(frame_values(over, '')) <> 0 OR differing(floats(over, 'ROWS 7 PRECEDING')) <> 0);
-- No row, one row, nothing but NULL.
SELECT id, sum(n) OVER (PARTITION BY k ORDER BY id) FROM l WHERE id < 0;
SELECT id, count(*) OVER (), rank() OVER (), percent_rank() OVER (), lag(id) OVER () FROM l WHERE id = 6;
CREATE TABLE nothing (k text, n int, x float8) USING lanes;
SELECT k, sum(n) OVER (PARTITION BY k ORDER BY n), row_number() OVER (PARTITION BY k ORDER BY n) FROM nothing;
INSERT INTO nothing SELECT NULL FROM generate_series(1, 3);
SELECT k, sum(n) OVER w, avg(x) OVER w, min(n) OVER w, count(n) OVER w, lag(k) OVER w, rank() OVER w, first_value(n) OVER w FROM nothing WINDOW w AS (PARTITION BY k, n ORDER BY x);
-- Rescans, cursors, parameters.
SELECT a, (SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY id) AS place FROM l WHERE n < a) s WHERE place = 1) AS keys FROM unnest(array[0, 100, 500]) a;
SELECT a, s.* FROM generate_series(1, 2) a, LATERAL (SELECT id, lag(id) OVER (ORDER BY id) + a AS before FROM l WHERE id < 4 OFFSET 0) s;
SELECT a, s.* FROM generate_series(1, 2) a LEFT JOIN (SELECT id, lag(id) OVER (ORDER BY id) AS before FROM l WHERE id < 4 OFFSET 0) s ON s.id = a;
BEGIN;
DECLARE up NO SCROLL CURSOR FOR SELECT id, lag(id) OVER (ORDER BY id DESC) FROM l;
FETCH 2 FROM up;
MOVE 3 FROM up;
FETCH 1 FROM up;
DECLARE both_ways SCROLL CURSOR FOR SELECT id, ntile(2) OVER (ORDER BY id) FROM l WHERE id < 5;
FETCH ALL FROM both_ways; FETCH BACKWARD 2 FROM both_ways;
COMMIT;
-- Frames of many rows, and more rows than are summed at once, without a partition: to the last bit.
SELECT differing('SELECT id, sum(coalesce(x, -0.25)) OVER w AS a, avg(coalesce(x, 1e-9)) OVER w AS b, sum(coalesce(r, 0.1::real)) OVER w AS c FROM %t WINDOW w AS (ORDER BY id ROWS 99 PRECEDING)');
SELECT differing('SELECT id, sum(coalesce(x, -0.25)) OVER w AS a, avg(coalesce(x, 1e-9)) OVER w AS b, sum(coalesce(r, 0.1::real)) OVER w AS c FROM %t WINDOW w AS (ORDER BY id ROWS BETWEEN 40 FOLLOWING AND 90 FOLLOWING)');
SELECT differing('SELECT id, sum(coalesce(x, -0.25)) OVER w AS a, avg(x) OVER w AS b, sum(n) OVER w AS c FROM %t WINDOW w AS (ORDER BY id DESC ROWS BETWEEN 20 PRECEDING AND 20 FOLLOWING)');
PREPARE before AS SELECT id, lag(id, $1) OVER (ORDER BY id), sum(n) OVER (ORDER BY id ROWS $2 PRECEDING) FROM l WHERE id < 5;
EXECUTE before(1, 1);
EXECUTE before(2, 0);
SET plan_cache_mode = force_generic_plan;
EXECUTE before(2, 1);
RESET plan_cache_mode;
-- Errors are PostgreSQL's.
SELECT ntile(0) OVER (ORDER BY id) FROM l;
SELECT nth_value(id, 0) OVER (ORDER BY id) FROM l;
SELECT sum(n) OVER (ORDER BY id ROWS -1 PRECEDING) FROM l;
SELECT sum(x * 1e302) OVER (ORDER BY id) FROM l WHERE x > 900000 AND x < 1e7;
-- Reasons for what is left to PostgreSQL.
EXPLAIN (COSTS OFF) SELECT sum(m) OVER (PARTITION BY k ORDER BY id) FROM l;
EXPLAIN (COSTS OFF) SELECT string_agg(k, ',') OVER (ORDER BY id) FROM l;
EXPLAIN (COSTS OFF) SELECT sum(n) OVER (ORDER BY n RANGE 3 PRECEDING) FROM l;
EXPLAIN (COSTS OFF) SELECT sum(n) OVER (ORDER BY n ROWS 3 PRECEDING EXCLUDE CURRENT ROW) FROM l;
EXPLAIN (COSTS OFF) SELECT lag(n, s) OVER (ORDER BY id), lag(n, 1, s::int) OVER (ORDER BY id) FROM l;
EXPLAIN (COSTS OFF) SELECT rank() OVER (ORDER BY k || 'x') FROM l;
EXPLAIN (COSTS OFF) SELECT rank() OVER (PARTITION BY m ORDER BY id) FROM l;
EXPLAIN (COSTS OFF) SELECT rank() OVER (PARTITION BY k ORDER BY id), rank() OVER (PARTITION BY n ORDER BY id) FROM l;
EXPLAIN (COSTS OFF) SELECT rank() OVER (ORDER BY id), lanes.delta(n) OVER (ORDER BY id) FROM l;
-- Rows that do not fit into memory: PostgreSQL's own plan takes over, or is planned.
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
SELECT differing('SELECT id, k, lag(k) OVER w AS a, sum(n) OVER w AS b, rank() OVER w AS c FROM %t WINDOW w AS (PARTITION BY k ORDER BY id)');
CREATE TABLE grown (id int, k text) USING lanes WITH (autovacuum_enabled = off);
INSERT INTO grown SELECT i, 'k' || i % 100 FROM generate_series(1, 10) i;
ANALYZE grown;
INSERT INTO grown SELECT i, 'k' || i % 100 FROM generate_series(1, 100000) i;
CREATE FUNCTION handed_over(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := 'no';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    found := coalesce(substring(line FROM 'Handed Over: (.*)'), found);
  END LOOP;
  RETURN found;
END $$;
SELECT handed_over('SELECT id, lag(id) OVER (ORDER BY id) FROM grown');
SELECT handed_over('SELECT max(d) FROM (SELECT id - lag(id) OVER (ORDER BY id) AS d FROM grown) s');
SELECT count(*), min(d), max(d), sum(d) FROM (SELECT id - lag(id) OVER (PARTITION BY k ORDER BY id) AS d FROM grown WHERE id > 10 OFFSET 0) s;
SELECT count(*), min(d), max(d), sum(d) FROM (SELECT id - lag(id) OVER (PARTITION BY k ORDER BY id) AS d FROM grown WHERE id > 10) s;
SELECT a, (SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY k ORDER BY id) FROM grown WHERE id > a OFFSET 0) s) FROM unnest(array[50000, 99990]) a;
ANALYZE grown;
EXPLAIN (COSTS OFF) SELECT id, lag(id) OVER (ORDER BY id) FROM grown;
RESET work_mem; RESET hash_mem_multiplier;
DROP TABLE l, h, nothing, grown, windows CASCADE;
DROP FUNCTION differing, ranks, frame_values, floats, bits, handed_over;

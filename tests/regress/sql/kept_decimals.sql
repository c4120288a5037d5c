-- Numerics of the arena that are kept as integers once they were read, and keys of groups that are looked up by them.
SET max_parallel_workers_per_gather = 0;
CREATE TABLE l (id int, p numeric(12,2), q numeric(6,3), u numeric, odd numeric, f float8) USING lanes;
CREATE FUNCTION rows_of(first int, last int) RETURNS TABLE (id int, p numeric, q numeric, u numeric, odd numeric, f float8) LANGUAGE sql AS $$
    SELECT i, CASE WHEN i % 17 > 0 THEN (i::bigint * 104729 % 10000000) / 100.0 - 30000 END, i % 401 / 8.0,
        CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN i % 100 / 10.0 WHEN 2 THEN i % 7 WHEN 3 THEN i % 100 / 10.00 ELSE -(i % 4) END,
        CASE i % 3000 WHEN 7 THEN 'NaN' WHEN 8 THEN 'Infinity' WHEN 9 THEN '-Infinity' WHEN 10 THEN 1e30 ELSE i % 50 END,
        CASE i % 1000 WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' WHEN 3 THEN '-Infinity' WHEN 4 THEN 1e25 WHEN 5 THEN NULL WHEN 6 THEN -0.0 WHEN 7 THEN 1e-300 ELSE (i % 777 - 300) / 8.0 + i % 3 * 0.005 END
    FROM generate_series(first, last) i $$;
INSERT INTO l SELECT * FROM rows_of(1, 40000);
CREATE TABLE l_heap USING heap AS TABLE l;
ANALYZE l; ANALYZE l_heap;
SET regress.lanes_tables = 'l';
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
CREATE FUNCTION pg_temp.all_same() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT q || ': ' || pg_temp.agreement(q) FROM unnest(ARRAY[
    'SELECT sum(p), avg(p), min(p), max(p), sum(q), max(u), sum(u), count(p) FROM l WHERE odd > -1',
    'SELECT sum(odd), avg(odd), min(odd), max(odd) FROM l', 'SELECT sum(odd), min(odd), max(odd) FROM l WHERE odd < 1000',
    'SELECT max(p) FROM l', 'SELECT min(odd) FROM l WHERE odd > 3.5', 'SELECT sum(p * (1 - q) * (1 + q)), avg(p - q + 1.5), sum(-p) FROM l',
    'SELECT id FROM l WHERE p > 69990.5', 'SELECT id FROM l WHERE p < -29000.125 AND q <> 1', 'SELECT count(*), sum(id) FROM l WHERE p BETWEEN 100 AND 200.005',
    'SELECT count(*) FROM l WHERE q IN (1.125, 2.25) OR p = -29895.27', 'SELECT count(*) FROM l WHERE u = 1.5 OR odd = ''NaN''', 'SELECT count(*) FROM l WHERE p > q AND odd < ''Infinity''',
    'SELECT id % 10, sum(p), avg(q), max(u), min(odd) FROM l GROUP BY 1', 'SELECT id, p FROM l ORDER BY p, id LIMIT 7', 'SELECT id, p FROM l ORDER BY p DESC NULLS LAST, id LIMIT 7',
    'SELECT p FROM l WHERE p IS NOT NULL ORDER BY p LIMIT 3', 'SELECT q, id FROM l ORDER BY q DESC, id LIMIT 9', 'SELECT q, id FROM l ORDER BY q, id DESC LIMIT 9', 'SELECT odd, id FROM l ORDER BY odd DESC, id LIMIT 40', 'SELECT odd FROM l ORDER BY odd LIMIT 40', 'SELECT p FROM l ORDER BY p DESC LIMIT 5000',
    'SELECT q, count(*), sum(p) FROM l GROUP BY q', 'SELECT trim_scale(u), count(*) FROM l GROUP BY 1', 'SELECT odd, count(*), sum(id) FROM l GROUP BY odd', 'SELECT p, q, count(*) FROM l WHERE id < 5000 GROUP BY p, q',
    'SELECT round(p, -3), max(id) FROM l GROUP BY 1', 'SELECT p::int % 100, count(*) FROM l GROUP BY 1', 'SELECT q * 2 - 1, count(*) FROM l GROUP BY 1', 'SELECT round(f::numeric, 2), count(*), sum(id) FROM l GROUP BY 1',
    'SELECT round(f::numeric, 0), count(*) FROM l GROUP BY 1', 'SELECT round((f * 1.5)::numeric, 1), count(*) FROM l GROUP BY 1', 'SELECT round(f::numeric, -1), count(*) FROM l GROUP BY 1', 'SELECT round(f::numeric, 16), count(*) FROM l GROUP BY 1',
    'SELECT count(DISTINCT q), count(DISTINCT u), count(DISTINCT odd), sum(DISTINCT q) FROM l', 'SELECT id % 5, count(DISTINCT p) FROM l GROUP BY 1', 'SELECT CASE WHEN q > 20 THEN q ELSE 0 END, count(*) FROM l GROUP BY 1',
    'SELECT width_bucket(p, -30000, 70000, 10), count(*) FROM l GROUP BY 1', 'SELECT odd > 3, u IS NULL, count(*) FROM l GROUP BY 1, 2']) q $$;
-- Items are read; then integers are kept; then they are read. Once more after other rows came.
SELECT * FROM pg_temp.all_same();
-- The first of equal numbers stands for its group, with its scale.
SELECT pg_temp.same('SELECT u, count(*), min(id) FROM l GROUP BY u');
INSERT INTO l SELECT * FROM rows_of(40001, 90000);
INSERT INTO l_heap SELECT * FROM rows_of(40001, 90000);
DELETE FROM l WHERE id % 1000 < 30; DELETE FROM l_heap WHERE id % 1000 < 30;
UPDATE l SET p = p + 0.5 WHERE id % 100 = 50; UPDATE l_heap SET p = p + 0.5 WHERE id % 100 = 50;
-- Rows that were rolled back, also with other values in the place of a column that was added afterwards.
BEGIN; INSERT INTO l SELECT i, 1e9, 999, 1.2345678901234567890123, 5, 5 FROM generate_series(1, 3000) i; ROLLBACK;
BEGIN; ALTER TABLE l ADD COLUMN late bytea; INSERT INTO l SELECT i, 2, 3, 4, 5, 6, decode(repeat('8b', 2 + i % 9), 'hex') FROM generate_series(1, 3000) i; ROLLBACK;
ALTER TABLE l ADD COLUMN late numeric; ALTER TABLE l_heap ADD COLUMN late numeric;
INSERT INTO l SELECT *, id / 4.0 FROM rows_of(90001, 95000);
INSERT INTO l_heap SELECT *, id / 4.0 FROM rows_of(90001, 95000);
SELECT count(*) FROM pg_temp.all_same() a WHERE a !~ ': same';
SELECT pg_temp.same('SELECT sum(late), min(late), max(late), count(late) FROM l') FROM generate_series(1, 3);
SELECT pg_temp.same('SELECT trim_scale(late), count(*) FROM l WHERE id % 50 = 0 GROUP BY 1') FROM generate_series(1, 3);
-- Sealed rows: first as they are stored, then decoded.
SELECT lanes.seal('l') > 0 AS sealed;
SELECT count(*) FROM pg_temp.all_same() a WHERE a !~ ': same';
SET lanes.decode_after = 0;
SELECT count(*) FROM pg_temp.all_same() a WHERE a !~ ': same';
SELECT pg_temp.same('SELECT sum(late), min(late), max(late), count(late) FROM l') FROM generate_series(1, 3);
-- A node that starts again forgets the results of its functions.
SELECT x, (SELECT count(*) FROM (SELECT q FROM l WHERE q > x GROUP BY q) s) FROM generate_series(10, 40, 10) x;
SELECT x, (SELECT count(*) FROM (SELECT round(q, 0) + x FROM l WHERE q > x GROUP BY 1) s) FROM generate_series(10, 40, 10) x;
RESET ALL;
DROP FUNCTION rows_of; DROP TABLE l, l_heap;

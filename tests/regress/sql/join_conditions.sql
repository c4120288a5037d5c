-- Conditions between the sides of a hash join that are no keys: in each kind of join, as vectors and by PostgreSQL.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA join_conditions; SET search_path = join_conditions;
CREATE TABLE trade (ts timestamptz, sym text, price float8, size int, side text, fee numeric) WITH (order_by = 'sym, ts');
INSERT INTO trade SELECT timestamptz '2024-01-01' + i * interval '1 s', 'S' || i % 40, CASE WHEN i % 19 = 0 THEN NULL WHEN i % 23 = 0 THEN float8 'NaN' ELSE i * 37 % 101 END, i % 13,
        (ARRAY['buy', 'sell', NULL])[i % 3 + 1], (i % 7)::numeric / 4
    FROM generate_series(1, 8000) i;
SELECT lanes.seal('trade');
INSERT INTO trade SELECT ts + interval '3 h', CASE WHEN size = 3 THEN NULL ELSE sym END, price, size, side, fee FROM trade WHERE size < 5;
DELETE FROM trade WHERE size = 11 AND price < 20;
CREATE TABLE trade_heap USING heap AS SELECT * FROM trade;
-- Several rows a symbol, NULLs, symbols without trades, and one zero.
CREATE TABLE lim (sym text, low float8, high float8, start timestamptz, stop timestamptz, side text, pieces int, cost numeric, active boolean) USING heap;
INSERT INTO lim SELECT 'S' || i % 50, CASE WHEN i % 9 = 0 THEN NULL ELSE i % 60 END, 60 + i % 40, timestamptz '2024-01-01' + i * interval '1 min', timestamptz '2024-01-01' + (i + 50) * interval '1 min',
        (ARRAY['buy', 'sell', 'none', NULL])[i % 4 + 1], i % 5, (i % 8)::numeric / 4, i % 3 = 0
    FROM generate_series(1, 90) i;
INSERT INTO lim VALUES (NULL, 1, 2, NULL, NULL, 'buy', NULL, NULL, NULL), ('S1', 'NaN', 'NaN', NULL, NULL, NULL, 2, 'NaN', true);
CREATE TABLE venue (size int, bonus float8, name text) USING heap;
INSERT INTO venue SELECT i % 9, i, 'v' || i FROM generate_series(1, 14) i;
CREATE TABLE lanes_lim AS SELECT * FROM lim;
CREATE TABLE lanes_lim_heap USING heap AS SELECT * FROM lim;
ANALYZE;
\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'trade|lanes_lim';

EXPLAIN (COSTS OFF) SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym WHERE t.price > m.low * 1.1 AND t.ts BETWEEN m.start AND m.stop;
EXPLAIN (COSTS OFF) SELECT t.ts, m.low FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND t.price > m.low WHERE coalesce(m.low, 0) < 30;
SELECT pg_temp.same('SELECT count(*), sum(t.size) FROM trade t JOIN (SELECT sym, avg(price) AS mean FROM trade WHERE price <> ''NaN'' GROUP BY sym) m USING (sym) WHERE t.price > m.mean');

-- Each condition in each kind of join, aggregated and as rows.
CREATE FUNCTION pg_temp.kinds(condition text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.same(replace(query, '~', condition)) FROM unnest(ARRAY[
        'SELECT m.side, count(*), sum(t.size), max(m.high) FROM trade t JOIN lim m ON m.sym = t.sym WHERE ~ GROUP BY 1',
        'SELECT count(*), count(m.sym), sum(t.size), sum(m.pieces) FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND ~',
        'SELECT count(*), count(m.sym), count(t.ts), sum(m.pieces) FROM trade t RIGHT JOIN lim m ON m.sym = t.sym AND ~',
        'SELECT count(*), count(m.sym), count(t.ts), sum(m.pieces) FROM trade t FULL JOIN lim m ON m.sym = t.sym AND ~',
        'SELECT count(*), sum(t.size) FROM trade t WHERE EXISTS (SELECT FROM lim m WHERE m.sym = t.sym AND ~)',
        'SELECT count(*), sum(t.size) FROM trade t WHERE NOT EXISTS (SELECT FROM lim m WHERE m.sym = t.sym AND ~)',
        'SELECT t.*, m.low, m.side FROM trade t JOIN lim m ON m.sym = t.sym AND ~ WHERE t.size < 4',
        'SELECT t.ts, t.sym, m.low, m.side FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND ~',
        'SELECT t.ts, t.sym, m.low, m.start FROM trade t FULL JOIN lim m ON m.sym = t.sym AND ~',
        'SELECT t.ts FROM trade t WHERE NOT EXISTS (SELECT FROM lim m WHERE m.sym = t.sym AND ~)']) AS query $$;
SELECT pg_temp.kinds('t.price > m.low');
SELECT pg_temp.kinds('t.price > m.low * 1.1 AND t.price <= m.high');
SELECT pg_temp.kinds('t.ts BETWEEN m.start AND m.stop');
SELECT pg_temp.kinds('t.size <> m.pieces');
SELECT pg_temp.kinds('t.size IS DISTINCT FROM m.pieces');
SELECT pg_temp.kinds('coalesce(t.price, m.low) > 50');
SELECT pg_temp.kinds('(t.price > m.high OR m.side = ''buy'' AND t.side IS NULL)');
-- By PostgreSQL: texts of both sides, numeric, functions, booleans.
SELECT pg_temp.kinds('t.side <> m.side');
SELECT pg_temp.kinds('t.side IS NOT DISTINCT FROM m.side');
SELECT pg_temp.kinds('t.fee >= m.cost');
SELECT pg_temp.kinds('(m.active OR t.side LIKE m.side || ''%'')');

-- Conditions that fail for some pairs of rows only, in PostgreSQL's order.
SELECT pg_temp.kinds('m.pieces <> 0 AND t.size / m.pieces > 1');
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym WHERE t.size / m.pieces > 1');
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym AND m.sym = ''S3'' WHERE t.size / m.pieces > 1');
SELECT pg_temp.same('SELECT count(*) FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND 10 / (t.size - m.pieces) > 1 AND t.size <> m.pieces');

-- Conditions on the rows of outer joins.
CREATE FUNCTION pg_temp.filtered(condition text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.same(replace(query, '~', condition)) FROM unnest(ARRAY[
        'SELECT count(*), count(m.sym), sum(t.size) FROM trade t LEFT JOIN lim m ON m.sym = t.sym WHERE ~',
        'SELECT count(*), count(m.sym), sum(t.size) FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND t.price > m.low WHERE ~',
        'SELECT m.side, count(*) FROM trade t RIGHT JOIN lim m ON m.sym = t.sym AND t.price > 90 WHERE ~ GROUP BY 1',
        'SELECT t.ts, t.sym, m.low, m.start FROM trade t FULL JOIN lim m ON m.sym = t.sym AND t.price > m.high WHERE ~']) AS query $$;
SELECT pg_temp.filtered('coalesce(m.low, 0) < 30');
SELECT pg_temp.filtered('m.side IS DISTINCT FROM ''buy''');
SELECT pg_temp.filtered('(m.side = ''sell'' OR m.sym IS NULL)');
SELECT pg_temp.filtered('coalesce(t.side, m.side, ''x'') <> ''sell''');
SELECT pg_temp.filtered('coalesce(t.price, 60) > coalesce(m.high, 50)');
SELECT pg_temp.filtered('(t.size IS NULL OR m.pieces IS NULL)');

-- Stars: conditions on one side, over two sides, beside keys over an earlier side.
SELECT pg_temp.same('SELECT v.name, count(*), sum(m.pieces) FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low JOIN venue v ON v.size = t.size AND v.bonus < t.price GROUP BY 1');
SELECT pg_temp.same('SELECT v.name, count(*), sum(m.pieces) FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low JOIN venue v ON v.size = t.size AND v.bonus < m.low GROUP BY 1');
SELECT pg_temp.same('SELECT t.ts, m.low, v.bonus FROM trade t JOIN lim m ON m.sym = t.sym JOIN venue v ON v.size = t.size AND v.bonus + t.price < m.low');
SELECT pg_temp.same('SELECT count(*), count(v.size), sum(v.bonus) FROM trade t JOIN lim m ON m.sym = t.sym LEFT JOIN venue v ON v.size = t.size AND v.bonus < m.low');
SELECT pg_temp.same('SELECT count(*), count(v.size), sum(v.bonus) FROM trade t LEFT JOIN lim m ON m.sym = t.sym AND m.low > t.price LEFT JOIN venue v ON v.size = m.pieces AND v.bonus < t.price WHERE v.bonus IS NULL OR v.bonus > 3');
SELECT pg_temp.same('SELECT count(*), sum(t.size) FROM trade t JOIN lim m ON m.sym = t.sym AND m.low < t.price WHERE NOT EXISTS (SELECT FROM venue v WHERE v.size = t.size AND v.bonus > m.low)');
-- A condition over several sides that PostgreSQL would have to evaluate for three rows.
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym JOIN venue v ON v.size = t.size WHERE v.name || m.side > t.side');
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym AND random() < 2');
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON t.price > m.low');

-- Lanes on both sides, batches, workers, limits, first rows of groups, parameters, rescans.
SELECT pg_temp.same('SELECT count(*), sum(m.high) FROM trade t JOIN lanes_lim m ON m.sym = t.sym AND t.price > m.low AND t.side <> m.side');
SELECT pg_temp.same('SELECT DISTINCT ON (t.sym) t.sym, t.ts, m.low FROM trade t JOIN (SELECT sym, max(low) AS low FROM lim WHERE low <> ''NaN'' GROUP BY sym) m ON m.sym = t.sym AND t.price > m.low ORDER BY t.sym, t.ts DESC, t.size');
SELECT pg_temp.same_order('SELECT t.ts, t.sym, m.low, m.high FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low ORDER BY t.ts, t.sym, m.low, m.high LIMIT 20', 'Row Limit');
SET plan_cache_mode = force_generic_plan;
PREPARE above (float8) AS SELECT count(*), sum(m.high) FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low * $1;
EXECUTE above (1.5); EXECUTE above (NULL); EXECUTE above (-1);
RESET plan_cache_mode;
SELECT x, (SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low + x) AS ours, (SELECT count(*) FROM trade_heap t JOIN lim m ON m.sym = t.sym AND t.price > m.low + x) AS heap FROM generate_series(0, 60, 20) x;
SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
CREATE TABLE crowd USING heap AS SELECT m.*, repeat('x', 200) AS text FROM lim m, generate_series(1, 30) WHERE m.sym < 'S2';
ANALYZE crowd;
SELECT pg_temp.explained('SELECT count(*), max(m.text) FROM trade t JOIN crowd m ON m.sym = t.sym AND t.price > m.low + 80', 'Batches');
SELECT pg_temp.same('SELECT count(*), max(length(m.text)) FROM trade t JOIN crowd m ON m.sym = t.sym AND t.price > m.low + 80');
SELECT pg_temp.same('SELECT count(*) FROM trade t WHERE EXISTS (SELECT FROM crowd m WHERE m.sym = t.sym AND t.price > m.low + 80)');
RESET work_mem; RESET hash_mem_multiplier;
SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT pg_temp.same('SELECT m.side, count(*), sum(t.size) FROM trade t JOIN lim m ON m.sym = t.sym AND t.price > m.low AND t.side <> m.side GROUP BY 1');
-- Rights: a function in a condition, and a security barrier.
CREATE FUNCTION secret(float8, float8) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 > $2';
CREATE FUNCTION closed(float8, float8) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 > $2; END';
REVOKE EXECUTE ON FUNCTION closed FROM public;
CREATE ROLE regress_join_conditions;
GRANT USAGE ON SCHEMA join_conditions TO regress_join_conditions; GRANT SELECT ON trade, lim TO regress_join_conditions;
SET ROLE regress_join_conditions;
SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym AND closed(t.price, m.low);
RESET ROLE;
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN lim m ON m.sym = t.sym AND closed(t.price, m.low) AND secret(t.price, m.high)');
DROP OWNED BY regress_join_conditions; DROP ROLE regress_join_conditions;
CREATE VIEW barrier WITH (security_barrier) AS SELECT * FROM lim WHERE low > 3;
SELECT pg_temp.same('SELECT count(*) FROM trade t JOIN barrier m ON m.sym = t.sym AND closed(t.price, m.low)');

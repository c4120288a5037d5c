-- Rows sealed by key and time: queries use the join algorithms that such rows allow, and agree with
-- PostgreSQL.
CREATE SCHEMA sorted;
SET search_path = sorted, public; SET default_table_access_method = lanes; SET timezone = 'UTC';
CREATE TABLE trade (ts timestamptz, sym text, venue int, price float8, size int) WITH (order_by = 'sym, venue, ts');
CREATE TABLE quote (ts timestamptz, sym text, venue int, bid float8, n smallint) WITH (order_by = 'sym, venue, ts');
INSERT INTO trade SELECT '2026-01-01'::timestamptz + i * 137 * interval '1 ms', 'S' || i * 7919 % 5, i / 7 % 2, i % 1000 / 4.0, nullif(i % 100, 7)
  FROM generate_series(1, 2600) i;
INSERT INTO quote SELECT '2026-01-01'::timestamptz + i * 151 * interval '1 ms', 'S' || i * 6007 % 6, i / 5 % 2, nullif(i % 900, 13) / 8.0, i % 50
  FROM generate_series(1, 2400) i;
SELECT lanes.seal('trade') > 0, lanes.seal('quote') > 0;
ANALYZE trade, quote;

-- Returns the join algorithm of a query, its number of rows, and how many of these differ from the
-- answer without the engine.
CREATE FUNCTION way(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; algorithm text; rows bigint; different bigint;
BEGIN
    DROP TABLE IF EXISTS ours, theirs;
    PERFORM set_config('lanes.vectorize', 'require', true);
    EXECUTE 'CREATE TEMPORARY TABLE ours USING heap AS ' || query;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        algorithm := coalesce(substring(line FROM 'Join Algorithm: (.*)'), algorithm);
    END LOOP;
    PERFORM set_config('lanes.vectorize', 'off', true), set_config('lanes.enable_asof', 'off', true);
    EXECUTE 'CREATE TEMPORARY TABLE theirs USING heap AS ' || query;
    PERFORM set_config('lanes.enable_asof', 'on', true);
    SELECT count(*) INTO rows FROM ours;
    SELECT count(*) INTO different FROM
        ((TABLE ours EXCEPT ALL TABLE theirs) UNION ALL (TABLE theirs EXCEPT ALL TABLE ours)) AS d;
    RETURN concat_ws(', ', algorithm, rows || ' rows', different || ' different');
END $$;
CREATE TABLE joins (number int, query text) USING heap;
INSERT INTO joins VALUES
  (1, 'SELECT t.ts, t.size, q.bid, q.n FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND q.venue = t.venue AND lanes.asof(q.ts <= t.ts)'),
  (2, 'SELECT t.ts, t.size, q.bid, q.n FROM trade t JOIN quote q ON q.sym = t.sym AND q.venue = t.venue AND lanes.asof(q.ts < t.ts)'),
  (3, 'SELECT count(*), sum(t.price - q.bid), count(q.bid) AS bids FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND q.venue = t.venue AND lanes.asof(q.ts <= t.ts) WHERE t.size > 50'),
  (4, 'SELECT count(*), sum(q.n) FROM trade t JOIN quote q ON q.sym = t.sym AND q.venue = t.venue AND q.n > 20 AND lanes.asof(q.ts <= t.ts)'),
  -- In the order of the first key alone, the times of a key do not ascend.
  (5, 'SELECT count(*), sum(q.n) FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts)');
SET client_min_messages = warning;
SELECT number, way(query) FROM joins ORDER BY 1;

-- Later rows are behind the sealed ones, and are found too.
BEGIN;
INSERT INTO quote SELECT '2026-01-01 00:05'::timestamptz + i * interval '1 s', 'S' || i % 6, i % 2, i, i FROM generate_series(1, 100) i;
SELECT number, way(query) FROM joins WHERE number IN (1, 4) ORDER BY 1;
ROLLBACK;
BEGIN;
INSERT INTO trade SELECT '2026-01-01 00:05'::timestamptz + i * interval '1 s', 'S' || i % 6, i % 2, i, i FROM generate_series(1, 100) i;
INSERT INTO trade VALUES (NULL, 'S1', 1, 1, 60), ('2026-01-01', NULL, 1, 1, 60);
SELECT number, way(query) FROM joins WHERE number IN (1, 4) ORDER BY 1;
ROLLBACK;
-- Rows beside deleted rows, and beside rows without a key or a time, are found too.
BEGIN;
DELETE FROM quote WHERE n % 7 = 3;
DELETE FROM trade WHERE size % 5 = 1;
SELECT number, way(query) FROM joins WHERE number IN (1, 4) ORDER BY 1;
ROLLBACK;
INSERT INTO trade VALUES (NULL, 'S1', 1, 1, 60), ('2026-01-01', NULL, 1, 1, 60), (NULL, NULL, NULL, 2, 70);
INSERT INTO quote VALUES ('2026-01-01', NULL, 1, 1, 60), ('2026-01-01', 'S9', NULL, 1, 60);
CREATE TABLE more_trade (LIKE trade) WITH (order_by = 'sym, venue, ts');
CREATE TABLE more_quote (LIKE quote) WITH (order_by = 'sym, venue, ts');
INSERT INTO more_trade TABLE trade; INSERT INTO more_quote TABLE quote;
SELECT lanes.seal('more_trade') > 0, lanes.seal('more_quote') > 0;
SELECT number, way(regexp_replace(query, '(trade|quote)( [tq])', 'more_\1\2', 'g')) FROM joins ORDER BY 1;

-- Groups of long stretches, of stretches that are too short, and of both keys; a text that few
-- vectors contain.
SELECT query, way(query) FROM unnest(ARRAY[
  'SELECT sym, count(*), sum(price), avg(price), min(size), max(size), sum(size) AS sizes FROM more_trade GROUP BY sym',
  'SELECT venue, sym, count(size), sum(price), max(price), avg(size) FROM more_trade GROUP BY 1, 2',
  'SELECT date_bin(''1 min'', ts, ''epoch'') AS b, avg(price), count(*), min(size) FROM more_trade GROUP BY 1',
  'SELECT sym, date_bin(''10 s'', ts, ''epoch'') AS b, sum(price), count(*) FROM more_trade GROUP BY 1, 2',
  'SELECT date_bin(''300 ms'', ts, ''epoch'') AS b, sum(price) FROM more_trade GROUP BY 1',
  'SELECT sym, sum(price), avg(price), count(*) FROM more_trade WHERE size > 30 GROUP BY sym',
  'SELECT sym, bool_or(size > 98), count(*) FILTER (WHERE price > 200), stddev(size) FROM more_trade GROUP BY sym',
  'SELECT * FROM more_trade WHERE sym = ''S3'' AND price > 240',
  'SELECT count(*), sum(price) FROM more_trade WHERE NOT sym = ''S3''',
  'SELECT count(*), sum(price) FROM more_trade WHERE sym IN (''S0'', ''S4'', ''nobody'')',
  'SELECT count(*), sum(price) FROM more_trade WHERE sym = ''nobody'''
]) AS query;

DROP SCHEMA sorted CASCADE;
DROP TABLE ours, theirs;

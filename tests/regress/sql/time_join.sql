-- Joins by time below LanesAggregate: plans, and answers compared with those without vectors and on
-- heap tables.
SET default_table_access_method = lanes; SET timezone = 'UTC'; SET datestyle = 'ISO';
CREATE SCHEMA time_join; SET search_path = time_join;
CREATE TABLE tick (id int, ts timestamptz, sym text, venue int2, ok bool, px float8, day date, at int4);
CREATE TABLE book (seq int, ts timestamptz, sym text, venue int8, ok bool, bid float8, size int4, rate real, day date, at int8);
INSERT INTO tick SELECT i, timestamptz '2024-01-01' + i * interval '3 s', 'S' || i % 7, i % 3, i % 2 = 0, i % 100 / 2.0, date '2024-01-01' + i / 40, i * 3
    FROM generate_series(1, 600) i;
INSERT INTO book SELECT i, timestamptz '2024-01-01' + i / 3 * interval '6 s', 'S' || i % 5, i % 4, i % 2 = 1, i % 200 / 4.0, i % 50, i % 30 / 8.0, date '2024-01-01' + i / 70, i * 2
    FROM generate_series(1, 900) i;
-- NULLs among the columns, but not among times and keys.
UPDATE book SET bid = NULL, size = NULL WHERE seq % 11 = 0;
CREATE TABLE tick_heap USING heap AS SELECT * FROM tick ORDER BY id;
CREATE TABLE book_heap USING heap AS SELECT * FROM book ORDER BY ctid;
DROP TABLE book; -- The update made it unsorted.
CREATE TABLE book AS SELECT * FROM book_heap ORDER BY seq;
TRUNCATE book_heap;
INSERT INTO book_heap SELECT * FROM book;
ANALYZE;

\getenv suite PG_ABS_SRCDIR
\set compare :suite '/include/compare.sql'
\i :compare
SET regress.lanes_tables = 'tick|book|quote|late|tall';
-- Returns how the join was done, and whether the answers agree.
CREATE OR REPLACE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE agreement text := pg_temp.agreement(query); algorithm text := 'not vectorised'; line text;
BEGIN
    IF agreement !~ 'rows' THEN RETURN agreement; END IF;
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        algorithm := coalesce(substring(line FROM '(?:Join Algorithm|Not Vectorised): (.*)'), algorithm);
    END LOOP;
    RETURN algorithm || ': ' || regexp_replace(agreement, ' rows$', '');
END $$;

-- Plans of the main shapes.
EXPLAIN (COSTS OFF) SELECT count(*), sum(b.bid - t.px) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
EXPLAIN (COSTS OFF) SELECT t.venue, sum(b.bid) FILTER (WHERE b.size > 3) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts < t.ts, tolerance => '9 s')
    WHERE t.px > 2 AND b.bid > t.px - 5 GROUP BY t.venue;
EXPLAIN (COSTS OFF) SELECT max(b.bid) FROM tick t LEFT JOIN book b ON b.venue = t.venue AND b.ok IS NOT DISTINCT FROM t.ok AND lanes.asof(b.at >= t.at);
EXPLAIN (COSTS OFF) SELECT count(b.bid) FROM tick t LEFT JOIN LATERAL (SELECT bid FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true;
EXPLAIN (COSTS OFF) SELECT sum(w.n), max(w.high), sum(w.total) FROM tick t LEFT JOIN LATERAL
    (SELECT count(*) AS n, max(bid) AS high, sum(size) AS total FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - interval '5 s' AND t.ts + interval '5 s') w ON true;
EXPLAIN (COSTS OFF) SELECT t.sym, avg(w.mean) FROM tick t CROSS JOIN LATERAL
    (SELECT avg(bid) AS mean FROM book WHERE sym = t.sym AND ts >= t.ts AND ts < t.ts + interval '1 min' AND size > 4) w WHERE w.mean > 3 GROUP BY t.sym;

-- Directions, strictness, tolerance, and both kinds of join.
SELECT kind, op, tolerance, pg_temp.same(format('SELECT count(*), count(b.bid), sum(b.bid), min(b.seq), max(b.seq), sum(b.seq) FROM tick t %s book b ON b.sym = t.sym AND lanes.asof(b.ts %s t.ts%s)', kind, op, tolerance))
    FROM unnest('{LEFT JOIN,JOIN}'::text[]) kind, unnest('{<=,<,>=,>}'::text[]) op, unnest(ARRAY['', ', ''0''', ', interval ''6 s''', ', ''1 month''']) tolerance ORDER BY kind, op, tolerance;
-- Times of other types, expressions as times, keys: none, several, of other types, NULL matching.
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON lanes.asof(b.at <= t.at)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.at > t.at, tolerance => 7)');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.day < t.day)');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.day)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON lanes.asof(b.ts <= t.ts - interval ''10 s'')');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON b.venue = t.venue AND lanes.asof(b.at <= t.at * 2)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON lanes.asof(b.ts <= timestamptz ''2024-01-01 00:10'')');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.sym = t.sym AND b.venue = t.venue AND b.ok = t.ok AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.bid = t.px AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.rate = t.px AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.size = t.id % 10 AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON b.sym IS NOT DISTINCT FROM nullif(t.sym, ''S3'') AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON b.bid IS NOT DISTINCT FROM t.px AND lanes.asof(b.ts <= t.ts)');
-- Conditions in ON, on either side, and above; groups; FILTER.
SELECT pg_temp.same('SELECT t.sym, count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND b.size > 20 WHERE t.px > 10 GROUP BY t.sym');
SELECT pg_temp.same('SELECT t.sym, t.ok, count(*) FILTER (WHERE b.seq IS NULL), sum(b.bid) FILTER (WHERE t.ok) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1, 2');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND t.id > 300');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND b.bid < t.px');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE b.bid < t.px OR b.bid IS NULL');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE b.seq IS NULL');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE b.seq = t.id');
SELECT pg_temp.same('SELECT b.size % 3, count(*) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1');
SELECT pg_temp.same('SELECT b.sym, count(*) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1');
SELECT pg_temp.same('SELECT lanes.time_bucket(''5 min'', t.ts), avg(b.size), stddev(b.bid), bool_or(b.seq > 300) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1 HAVING count(*) > 3');
SELECT pg_temp.same('SELECT count(b), max(b.ts), max(b.ts - t.ts) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), count(b.ok), max(b.ts), min(b.day), sum(b.rate) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(length(b.sym)) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
-- Joins that are written by hand.
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t LEFT JOIN LATERAL (SELECT at FROM book WHERE sym = t.sym AND at <= t.at AND size > 2 ORDER BY at DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t JOIN LATERAL (SELECT * FROM book q WHERE t.sym = q.sym AND t.at < q.at ORDER BY at LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t LEFT JOIN LATERAL (SELECT * FROM book q WHERE t.sym = q.sym AND at < t.at ORDER BY at DESC LIMIT 1) b ON b.at > 100');
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t CROSS JOIN LATERAL (SELECT at FROM book WHERE at <= t.at AND at >= t.at - 5 AND at > 50 ORDER BY at DESC LIMIT 1) b');
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t LEFT JOIN LATERAL (SELECT at FROM book WHERE sym = t.sym ORDER BY at DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t LEFT JOIN LATERAL (SELECT at FROM book WHERE sym = t.sym AND at <= t.at ORDER BY at DESC LIMIT 1 OFFSET 1) b ON true');
-- Columns that are computed from the right side only.
SELECT pg_temp.same('SELECT count(*), sum(b.twice), sum(b.px), min(b.late) FROM tick t LEFT JOIN LATERAL (SELECT seq * 2 AS twice, bid * size - seq AS px, ts + interval ''1 s'' AS late, ts FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.twice, b.px, b.late, b.seq FROM tick t LEFT JOIN LATERAL (SELECT seq * 2 AS twice, bid * size - seq AS px, ts + interval ''1 s'' AS late, seq FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.twice FROM tick t JOIN LATERAL (SELECT seq * 2 AS twice FROM book WHERE sym = t.sym AND ts > t.ts ORDER BY ts LIMIT 1) b ON true WHERE b.twice % 3 = 1');
SELECT pg_temp.same('SELECT t.id, b.twice + b.twice AS four FROM tick t LEFT JOIN LATERAL (SELECT -seq::int8 * 2 AS twice FROM book WHERE sym = t.sym AND ts < t.ts ORDER BY ts DESC LIMIT 1) b ON true WHERE b.twice IS NULL OR b.twice < -9');
SELECT pg_temp.same('SELECT t.sym, b.half, sum(b.size) FROM tick t JOIN LATERAL (SELECT size / 2 AS half, size FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true GROUP BY 1, 2');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t LEFT JOIN LATERAL (SELECT 1 / (seq - seq) AS x FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t JOIN LATERAL (SELECT 1 / (seq - seq) AS x, seq FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true WHERE b.seq < 0');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t LEFT JOIN LATERAL (SELECT 7 AS x FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t LEFT JOIN LATERAL (SELECT coalesce(seq, 0) AS x FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t LEFT JOIN LATERAL (SELECT bid - t.px AS x FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
SELECT pg_temp.same('SELECT t.id, b.x FROM tick t LEFT JOIN LATERAL (SELECT seq > 30 AS x, length(sym) FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true');
PREPARE computed(int) AS SELECT count(*), sum(b.x) FROM tick t LEFT JOIN LATERAL (SELECT seq * $1 AS x FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE computed(1);
EXECUTE computed(1);
EXECUTE computed(NULL);
SET lanes.vectorize = off;
EXECUTE computed(1);
RESET lanes.vectorize;
RESET plan_cache_mode;
DEALLOCATE computed;
-- Time windows.
SELECT kind, range, pg_temp.same('SELECT count(*), sum(w.n), sum(w.c), sum(w.s), min(w.low), max(w.high), round(sum(w.a)::numeric, 6), sum(w.r), max(w.d), count(w.s) FROM tick t ' || kind || ' JOIN LATERAL
    (SELECT count(*) AS n, count(bid) AS c, sum(size) AS s, min(bid) AS low, max(rate) AS high, avg(bid) AS a, sum(rate) AS r, max(day) AS d
    FROM book WHERE sym = t.sym AND ts ' || range || ') w ' || rest) FROM (VALUES ('LEFT', 'ON true'), ('CROSS', '')) k(kind, rest),
    unnest(ARRAY['BETWEEN t.ts - interval ''9 s'' AND t.ts + interval ''9 s''', '> t.ts - interval ''9 s'' AND ts < t.ts', '<= t.ts', '> t.ts', 'BETWEEN t.ts + interval ''1 s'' AND t.ts', '= t.ts']) range ORDER BY kind, range;
SELECT pg_temp.same('SELECT t.sym, sum(w.n) FILTER (WHERE w.v > 0.5), round(sum(w.v)::numeric, 6) FROM tick t LEFT JOIN LATERAL
    (SELECT count(*) AS n, sum(bid * size) / nullif(sum(size), 0) AS v FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - interval ''9 s'' AND t.ts) w ON true GROUP BY 1');
SELECT pg_temp.same('SELECT sum(w.pv / w.v), count(*) FROM tick t CROSS JOIN LATERAL
    (SELECT sum(bid * size) AS pv, sum(size::float8) AS v FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - interval ''60 s'' AND t.ts AND size > 0) w WHERE w.v > 0');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(*) AS n FROM book WHERE at BETWEEN t.at - t.venue AND t.at + 2 * t.venue) w ON true');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE ok) AS n FROM book WHERE at BETWEEN t.at - 5 AND t.at) w ON true');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT avg(size) AS n FROM book WHERE at BETWEEN t.at - 5 AND t.at) w ON true');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT sum(size) AS n FROM book WHERE at BETWEEN t.at - 5 AND t.at GROUP BY sym) w ON true');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT sum(size) AS n FROM book WHERE at BETWEEN t.at - 5 AND t.at HAVING count(*) > 1) w ON true');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT sum(size) AS n FROM book WHERE at BETWEEN t.at - 5 AND t.at) w ON w.n > 20');

-- Errors only arise for rows that take part: of a time window, of the left side, of the time.
SELECT pg_temp.same('SELECT sum(w.s) FROM tick t LEFT JOIN LATERAL (SELECT sum(100 / (seq - 5)) AS s FROM book WHERE sym = t.sym AND at BETWEEN t.at - 5 AND t.at + 5) w ON true WHERE t.id > 50');
SELECT pg_temp.same('SELECT sum(w.s) FROM tick t LEFT JOIN LATERAL (SELECT sum(100 / (seq - 5)) AS s FROM book WHERE at BETWEEN t.at - 5 AND t.at + 5) w ON true');
SELECT pg_temp.same('SELECT sum(w.s) FROM tick t LEFT JOIN LATERAL (SELECT count(seq + 2147483000) AS s FROM book WHERE at < t.at) w ON true WHERE t.id < 100');
SELECT pg_temp.same('SELECT sum(w.s) FROM tick t LEFT JOIN LATERAL (SELECT count(seq + 2147483000) AS s FROM book WHERE at < t.at) w ON true');
SELECT pg_temp.same('SELECT sum(b.seq) FROM tick t LEFT JOIN book b ON lanes.asof(b.ts <= t.ts + interval ''2562000000 h'')');
SELECT pg_temp.same('SELECT sum(b.seq) FROM tick t LEFT JOIN book b ON lanes.asof(b.ts <= t.ts + interval ''2562000000 h'') WHERE t.ts < ''2023-01-01''');
SELECT pg_temp.same('SELECT sum(b.seq) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => ''-1 s'')');
SELECT pg_temp.same('SELECT sum(1 / (b.seq - b.seq)) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT sum(1 / (b.seq - b.seq)) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts > t.ts + interval ''1 day'')');

-- Positions of the join: views, CTEs, sub-selects, prepared statements.
CREATE VIEW matched AS SELECT t.sym, t.px, b.bid FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
EXPLAIN (COSTS OFF) SELECT sum(bid - px) FROM matched WHERE px > 5;
CREATE VIEW matched_heap AS SELECT t.sym, t.px, b.bid FROM tick_heap t LEFT JOIN book_heap b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT (SELECT sum(bid - px) FROM matched WHERE px > 5) = (SELECT sum(bid - px) FROM matched_heap WHERE px > 5) AS view;
SELECT pg_temp.same('WITH m AS (SELECT t.sym, b.bid FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)) SELECT sym, sum(bid) FROM m GROUP BY 1');
SELECT pg_temp.same('SELECT sum(s) FROM (SELECT t.sym, sum(b.bid) AS s FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1) x');
SELECT pg_temp.same('SELECT n, (SELECT sum(b.seq) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE t.venue = n) FROM generate_series(0, 3) n');
SELECT pg_temp.same('SELECT n, (SELECT sum(b.seq) FROM tick t JOIN book b ON b.sym = t.sym AND b.size > n AND lanes.asof(b.ts <= t.ts + n * interval ''1 s'')) FROM generate_series(0, 30, 10) n');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t JOIN book b ON b.size = (SELECT 7) AND lanes.asof(b.ts <= t.ts, tolerance => (SELECT interval ''90 s''))');
SELECT pg_temp.same('SELECT count(*) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) LEFT JOIN book c ON c.sym = t.sym AND lanes.asof(c.ts > t.ts)');
SET plan_cache_mode = force_generic_plan;
PREPARE near(interval, float8) AS SELECT count(*), count(b.bid), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => $1) WHERE t.px > $2;
PREPARE plain(interval, float8) AS SELECT count(*), count(b.bid), sum(b.bid) FROM tick_heap t LEFT JOIN book_heap b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => $1) WHERE t.px > $2;
EXPLAIN (COSTS OFF) EXECUTE near('6 s', 3);
EXECUTE near('6 s', 3);
EXECUTE plain('6 s', 3);
EXECUTE near('1 s', 30);
EXECUTE plain('1 s', 30);
EXECUTE near('-1 s', 30);
EXECUTE near(NULL, 30);
PREPARE around(interval) AS SELECT sum(w.n), max(w.m) FROM tick t LEFT JOIN LATERAL
    (SELECT count(*) AS n, avg(bid) AS m FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - $1 AND t.ts + $1) w ON true;
EXPLAIN (COSTS OFF) EXECUTE around('6 s');
EXECUTE around('6 s');
EXECUTE around(NULL);
ALTER TABLE book DROP COLUMN rate; -- A new plan, and a dropped column.
EXECUTE around('30 s');
SELECT sum(w.n), max(w.m) FROM tick_heap t LEFT JOIN LATERAL
    (SELECT count(*) AS n, avg(bid) AS m FROM book_heap WHERE sym = t.sym AND ts BETWEEN t.ts - interval '30 s' AND t.ts + interval '30 s') w ON true;
ALTER TABLE book_heap DROP COLUMN rate;
RESET plan_cache_mode;
BEGIN;
DECLARE c CURSOR FOR SELECT t.sym, sum(b.seq) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1;
FETCH 1 FROM c;
MOVE BACKWARD ALL FROM c;
COMMIT;

-- Merging stops when one of the sides goes back in time; rows of the same transaction; NULL and
-- infinite times, NULL keys.
CREATE TABLE late (seq int, ts timestamptz, sym text, v int);
INSERT INTO late SELECT i, timestamptz '2024-01-01' + i * interval '1 s', 'S' || i % 9, i % 77 FROM generate_series(1, 6000) i;
CREATE TABLE late_heap USING heap AS SELECT * FROM late ORDER BY seq;
CREATE INDEX ON late_heap (sym, ts, seq);
CREATE TABLE quote (seq int, ts timestamptz, sym text, v int);
INSERT INTO quote SELECT i, timestamptz '2024-01-01' + i * interval '1100 ms', 'S' || i % 8, i % 91 FROM generate_series(1, 5000) i;
CREATE TABLE quote_heap USING heap AS SELECT * FROM quote ORDER BY seq;
CREATE INDEX ON quote_heap (sym, ts, seq);
ANALYZE late, quote, late_heap, quote_heap;
CREATE FUNCTION pg_temp.both(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE change;
    EXECUTE regexp_replace(change, '\m(quote|late)\M', '\1_heap', 'g');
    RETURN pg_temp.same('SELECT count(*), sum(b.v), sum(b.seq::int8 * t.seq) FROM quote t LEFT JOIN late b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)')
        || '; ' || pg_temp.same('SELECT count(*), sum(b.v) FROM quote t JOIN late b ON b.sym = t.sym AND lanes.asof(b.ts < t.ts) AND b.v + 0 > 2');
END $$;
SELECT pg_temp.both('SELECT');
BEGIN;
SELECT pg_temp.both('INSERT INTO late VALUES (10001, ''2024-01-01 00:30'', ''S1'', 12345), (10002, ''2024-01-01 00:30'', ''S1'', 54321)');
SELECT pg_temp.both('DELETE FROM late WHERE seq = 10002 OR seq % 7 = 3');
SAVEPOINT s;
SELECT pg_temp.both('UPDATE late SET v = v + 1000 WHERE seq BETWEEN 2000 AND 4100');
ROLLBACK TO s;
SELECT pg_temp.both('DELETE FROM late WHERE seq BETWEEN 2000 AND 4100');
ROLLBACK;
BEGIN;
SELECT pg_temp.both('INSERT INTO quote VALUES (10001, ''2024-01-01 00:30'', ''S1'', 1), (10002, ''2023-01-01 00:30'', ''S2'', 1)');
SELECT pg_temp.both('DELETE FROM quote WHERE seq BETWEEN 10000 AND 20000');
ROLLBACK;
BEGIN;
SELECT pg_temp.both('INSERT INTO late VALUES (10001, NULL, ''S1'', 1), (10002, ''infinity'', ''S1'', 2), (10003, ''infinity'', NULL, 3)');
SELECT pg_temp.both('INSERT INTO quote VALUES (10001, NULL, ''S1'', 1), (10002, ''infinity'', ''S1'', 2), (10003, ''infinity'', NULL, 3)');
SELECT pg_temp.both('INSERT INTO late VALUES (10004, ''-infinity'', ''S1'', 4)');
SELECT pg_temp.both('INSERT INTO quote VALUES (10004, ''-infinity'', ''S1'', 4)');
SELECT pg_temp.same('SELECT sum(w.n), sum(w.v) FROM quote t LEFT JOIN LATERAL (SELECT count(*) AS n, sum(v) AS v FROM late b WHERE b.sym = t.sym AND b.ts BETWEEN t.ts - interval ''9 s'' AND t.ts + interval ''9 s'') w ON true WHERE t.seq > 4900');
ROLLBACK;
BEGIN;
SELECT pg_temp.both('UPDATE late SET sym = NULL WHERE seq % 5 = 0');
SELECT pg_temp.both('UPDATE quote SET ts = NULL WHERE seq % 5 = 0');
ROLLBACK;
BEGIN;
SELECT pg_temp.both('DELETE FROM late');
SELECT pg_temp.both('DELETE FROM quote');
ROLLBACK;
BEGIN; -- A late row whose left rows are in an earlier vector.
SELECT pg_temp.both('INSERT INTO late VALUES (10001, ''2024-01-01 00:10:05'', ''S0'', 12345)');
SELECT pg_temp.same('SELECT sum(w.n), sum(w.v) FROM quote t LEFT JOIN LATERAL (SELECT count(*) AS n, sum(v) AS v FROM late b WHERE b.sym = t.sym AND b.ts BETWEEN t.ts - interval ''9 s'' AND t.ts + interval ''1 s'') w ON true WHERE t.seq BETWEEN 500 AND 600');
SELECT pg_temp.same('SELECT t.seq, b.v FROM quote t JOIN late b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
ROLLBACK;
SELECT pg_temp.both('SELECT');

-- A segment whose last vectors contribute no rows, because of their times or a qual, before another
-- segment.
CREATE TABLE tall (seq int, ts timestamptz, sym int, v int);
INSERT INTO tall SELECT i, '2024-01-01'::timestamptz + i * interval '1 s', i % 3, 1 FROM generate_series(1, 65536) i;
INSERT INTO tall SELECT i, CASE WHEN (i - 1) % 65536 < 40960 THEN '2024-01-01'::timestamptz + i * interval '1 s' END, i % 3, 2 FROM generate_series(65537, 131072) i;
INSERT INTO tall SELECT i, '2024-01-01'::timestamptz + i * interval '1 s', i % 3, CASE WHEN i < 150000 THEN 3 END FROM generate_series(131073, 196608) i;
INSERT INTO tall SELECT i, '2024-01-01'::timestamptz + i * interval '1 s', 0, 4 FROM generate_series(196609, 200000) i;
CREATE TABLE tall_heap USING heap AS SELECT * FROM tall;
CREATE INDEX ON tall_heap (sym, ts);
CREATE TABLE probe AS SELECT i AS seq, timestamptz '2024-01-01' + i * interval '80 s' AS ts, i % 4 AS sym FROM generate_series(1, 2600) i;
ANALYZE tall, tall_heap, probe;
SELECT pg_temp.same('SELECT t.sym, count(*), sum(b.seq), sum(b.v) FROM probe t LEFT JOIN tall b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) GROUP BY 1');
SELECT pg_temp.same('SELECT count(*), sum(b.seq), sum(b.v) FROM probe t LEFT JOIN tall b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND b.v * 2 > 1');
SELECT pg_temp.same('SELECT sum(w.n), sum(w.s) FROM probe t LEFT JOIN LATERAL (SELECT count(*) AS n, sum(v) AS s FROM tall b WHERE b.sym = t.sym AND b.ts BETWEEN t.ts - interval ''9 s'' AND t.ts AND b.v * 2 > 1) w ON true WHERE t.seq % 200 = 0');
DROP TABLE tall, tall_heap, probe;

-- Privileges and policies of both sides apply.
CREATE ROLE regress_time_join;
GRANT USAGE ON SCHEMA time_join TO regress_time_join;
GRANT SELECT ON tick TO regress_time_join;
GRANT SELECT (ts, sym, bid) ON book TO regress_time_join;
SET ROLE regress_time_join;
SELECT count(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT sum(b.size) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(size) AS n FROM book WHERE sym = t.sym AND ts <= t.ts) w ON true;
SELECT count(b.v) FROM tick t LEFT JOIN quote b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT count(*) FROM quote t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET ROLE;
CREATE FUNCTION leak(float8) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN IF $1 > 25 THEN RETURN true; END IF; RAISE 'saw what is hidden: %', $1; END $$;
ALTER TABLE book ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON book TO regress_time_join USING (bid > 25);
SET ROLE regress_time_join;
EXPLAIN (COSTS OFF) SELECT count(b.bid), min(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT count(b.bid), min(b.bid), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT sum(w.n), min(w.m) FROM tick t LEFT JOIN LATERAL (SELECT count(bid) AS n, min(bid) AS m FROM book WHERE sym = t.sym AND ts <= t.ts) w ON true;
SET lanes.vectorize = off;
SELECT count(b.bid), min(b.bid), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT sum(w.n), min(w.m) FROM tick t LEFT JOIN LATERAL (SELECT count(bid) AS n, min(bid) AS m FROM book WHERE sym = t.sym AND ts <= t.ts) w ON true;
RESET lanes.vectorize;
SELECT count(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND leak(b.bid) WHERE t.id = 599;
RESET ROLE;
ALTER TABLE book DISABLE ROW LEVEL SECURITY;
ALTER TABLE tick ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON tick TO regress_time_join USING (id < 100);
SET ROLE regress_time_join;
SELECT count(*), count(b.bid), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE t.px > 20 AND b.bid > 3;
SET lanes.vectorize = off;
SELECT count(*), count(b.bid), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE t.px > 20 AND b.bid > 3;
RESET lanes.vectorize;
RESET ROLE;
ALTER TABLE tick DISABLE ROW LEVEL SECURITY;
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM book WHERE bid > 10;
CREATE VIEW guarded_heap WITH (security_barrier) AS SELECT * FROM book_heap WHERE bid > 10;
SELECT (SELECT sum(b.bid) FROM tick t LEFT JOIN guarded b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE b.size > 3)
    = (SELECT sum(b.bid) FROM tick_heap t LEFT JOIN guarded_heap b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE b.size > 3) AS barrier;

-- Other sides: heap on the right, heap on the left, child tables of either, rows of a function.
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book_heap b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.bid) FROM tick_heap t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
CREATE TABLE book_more () INHERITS (book);
CREATE TABLE book_heap_more () INHERITS (book_heap) USING heap;
INSERT INTO book_more SELECT * FROM book WHERE seq % 3 = 0;
UPDATE book_more SET seq = seq + 1000, ts = ts + interval '2 s';
INSERT INTO book_heap_more SELECT * FROM book_more;
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(*) AS n FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - interval ''9 s'' AND t.ts) w ON true');
SELECT pg_temp.same('SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN ONLY book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.id) FROM book t LEFT JOIN tick b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
SELECT pg_temp.same('SELECT count(*), sum(b.id) FROM ONLY book t LEFT JOIN tick b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts)');
DROP TABLE book_more, book_heap_more;
ANALYZE book, book_heap; -- The tables are known to have no child tables.
SELECT pg_temp.same('SELECT count(*), sum(b.at) FROM tick t LEFT JOIN LATERAL (SELECT at FROM book WHERE sym = t.sym AND at <= t.at AND random() >= 0 ORDER BY at DESC LIMIT 1) b ON true');

-- require accepts the plans above, and reports the reason for others.
SET lanes.vectorize = require;
SELECT count(*), sum(b.seq) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(*) AS n FROM book WHERE sym = t.sym AND ts BETWEEN t.ts - interval '9 s' AND t.ts) w ON true;
SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) AND b.bid < t.px;
SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tie => b.seq);
SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof_nearest(b.ts, t.ts);
SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT avg(size) AS n FROM book WHERE ts BETWEEN t.ts - interval '9 s' AND t.ts) w ON true;
SELECT sum(w.n) FROM tick t LEFT JOIN LATERAL (SELECT count(*) AS n FROM book WHERE ts BETWEEN t.ts - interval '1 month' AND t.ts) w ON true;
SELECT count(*), sum(b.bid) FROM tick t LEFT JOIN book_heap b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET lanes.vectorize;
SET lanes.enable_asof = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET lanes.enable_asof;

SELECT count(b.seq), sum(b.seq) FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);

SET client_min_messages = warning;
DROP SCHEMA time_join CASCADE;
DROP ROLE regress_time_join;

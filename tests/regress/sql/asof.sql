-- ASOF joins: the marker, its rewrite, and the documented contract, on lanes and heap tables.
SET timezone = 'UTC';
SET default_table_access_method = lanes; -- Heap tables are marked USING heap.
SET lanes.vectorize = off; -- The plans are about joins only.
CREATE TABLE trade (id int, ts timestamptz, sym text, px float8);
CREATE TABLE quote (ts timestamptz, sym text, bid float8, seq int);
INSERT INTO trade VALUES
    (1, '2024-01-01 00:00:10', 'A', 1), (2, '2024-01-01 00:00:20', 'A', 2), (3, '2024-01-01 00:00:05', 'B', 3),
    (4, NULL, 'A', 4), (5, 'infinity', 'A', 5), (6, '-infinity', 'A', 6), (7, '2024-01-01 00:00:16', NULL, 7),
    (8, '2024-01-01 00:00:14', 'A', 8);
-- Two rows with equal times, a late row, a NULL time, a NULL key.
INSERT INTO quote VALUES
    ('2024-01-01 00:00:19', 'A', 12, 3), ('2024-01-01 00:00:09', 'A', 10, 2), ('2024-01-01 00:00:09', 'A', 11, 1),
    ('2024-01-01 00:00:06', 'B', 13, 4), (NULL, 'A', 14, 5), ('2024-01-01 00:00:15', NULL, 15, 6);
CREATE TABLE quote_heap USING heap AS SELECT * FROM quote;

-- The four directions.
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote_heap q ON q.sym = t.sym AND lanes.asof(t.ts >= q.ts) ORDER BY id;
SELECT id, q.* FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts < t.ts) ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts >= t.ts) ORDER BY id;
SELECT id, q.* FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(t.ts < q.ts) ORDER BY id;
-- The equivalent query in the contract, without the order of arrival.
SET lanes.enable_asof = off;
EXPLAIN (COSTS OFF, VERBOSE) SELECT id, q.bid FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts);
RESET lanes.enable_asof;
-- An index of a heap table serves the sub-select.
CREATE INDEX ON quote_heap (sym, ts);
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) SELECT id, q.bid FROM trade t LEFT JOIN quote_heap q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts);
SELECT id, q.* FROM trade t LEFT JOIN quote_heap q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id;
RESET enable_seqscan; RESET enable_bitmapscan;

-- Nearest: of two equidistant rows the earlier one is chosen. All times are equally far from
-- infinity.
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof_nearest(q.ts, t.ts) ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote_heap q ON q.sym = t.sym AND lanes.asof_nearest(t.ts, q.ts, tolerance => '4 s') ORDER BY id;
SELECT a, b FROM unnest('{-infinity,2024-01-01,infinity}'::timestamptz[]) a
    LEFT JOIN unnest('{-infinity,infinity}'::timestamptz[]) b ON lanes.asof_nearest(a, b) ORDER BY a;
SELECT a, b FROM unnest('{-9223372036854775808,0,-1,9223372036854775807}'::int8[]) a
    LEFT JOIN unnest('{9223372036854775807,-9223372036854775808}'::int8[]) b ON lanes.asof_nearest(a, b) ORDER BY a;
SELECT a, b FROM unnest('{-infinity,1,5,NaN}'::float8[]) a
    LEFT JOIN unnest('{0,NaN,2,infinity,6.5}'::float8[]) b ON lanes.asof_nearest(a, b) ORDER BY a;
SELECT a, b FROM unnest('{-infinity,1,5,NaN}'::numeric[]) a
    LEFT JOIN unnest('{0,NaN,2,infinity,6.5}'::numeric[]) b ON lanes.asof_nearest(a, b, tolerance => 1) ORDER BY a;
SELECT a, b FROM unnest('{2024-01-01,infinity,-infinity}'::date[]) a
    LEFT JOIN unnest('{2023-12-30,2024-01-03}'::date[]) b ON lanes.asof_nearest(a, b) ORDER BY a;
SELECT a, b FROM unnest('{1,2}'::int2[]) a LEFT JOIN unnest('{0.75,1.5}'::numeric[]) b ON lanes.asof_nearest(a, b) ORDER BY a;

-- Keys: none, several, NULL matching by IS NOT DISTINCT FROM. Other conditions restrict the
-- candidates; WHERE applies after the choice.
SELECT id, q.* FROM trade t LEFT JOIN quote q ON lanes.asof(q.ts <= t.ts) ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym IS NOT DISTINCT FROM t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) AND q.bid < t.px + 9.5 AND t.id > 1 ORDER BY id;
SELECT id, q.* FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) WHERE q.bid > 11 ORDER BY id;

-- Ties: backward chooses the row that arrived last, forward the first one. An explicit tie decides,
-- and a NULL tie loses.
SELECT q.seq AS backward FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) WHERE id = 1;
SELECT q.seq AS forward FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts >= t.ts - interval '1 s') WHERE id = 1;
SELECT q.seq AS backward_by_seq FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tie => q.seq) WHERE id = 1;
SELECT q.seq AS forward_by_seq FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts >= t.ts - interval '1 s', tie => q.seq) WHERE id = 1;
SELECT q.seq AS both FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tolerance => interval '5 s', tie => q.seq) WHERE id = 1;
SELECT q.seq AS null_loses FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tie => nullif(q.seq, 2)) WHERE id = 1;
BEGIN;
UPDATE quote SET seq = seq WHERE seq = 2; -- The new version counts as a new arrival.
SELECT q.seq AS after_update FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) WHERE id = 1;
ROLLBACK;

-- Tolerance: inclusive, in the type of the times' difference.
SELECT id, q.ts FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tolerance => '1 s') ORDER BY id;
SELECT id, q.ts FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts >= t.ts, tolerance => '0') ORDER BY id;
SELECT id, q.ts FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, '1 month'::interval) ORDER BY id;
SELECT a, b FROM generate_series(1, 10, 3) a LEFT JOIN (VALUES (3), (8)) v(b) ON lanes.asof(b <= a, tolerance => 1) ORDER BY a;
SELECT a, b FROM generate_series(1, 10, 3) a LEFT JOIN (VALUES (3.5), (8.75)) v(b) ON lanes.asof(b <= a, tolerance => '1.25') ORDER BY a;
SELECT a, b FROM generate_series(1, 10, 3) a LEFT JOIN (VALUES (3.5::float4), (8.75)) v(b) ON lanes.asof(b <= a, tolerance => 0.5) ORDER BY a;
SELECT a::date, b FROM generate_series(date '2024-01-01', '2024-01-04', '1 day') a
    LEFT JOIN (VALUES (date '2024-01-02')) v(b) ON lanes.asof(b <= a::date, tolerance => 1) ORDER BY a;
SELECT a, b FROM (VALUES (-2147483648), (2147483647)) u(a) LEFT JOIN (VALUES (-2147483648)) v(b) ON lanes.asof(b <= a, tolerance => 5) ORDER BY a;
PREPARE within(interval) AS SELECT id, q.ts FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tolerance => $1) ORDER BY id;
EXECUTE within('1 s');
EXECUTE within('5 s');
EXECUTE within('-1 s');
EXECUTE within(NULL);
SET plan_cache_mode = force_generic_plan;
EXECUTE within('1 s');
EXECUTE within('-1 s');
RESET plan_cache_mode;
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tolerance => '-1 s');
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tolerance => NULL);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tolerance => 5);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tolerance => 'soon');
SELECT FROM trade t JOIN quote q ON lanes.asof(q.bid <= t.px, tolerance => 'NaN');
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tolerance => q.seq * interval '1 s');

-- Positions of a join in a query.
CREATE VIEW matched AS SELECT t.id, q FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tolerance => '5 s', tie => q.seq);
SELECT pg_get_viewdef('matched');
SELECT * FROM matched ORDER BY id;
WITH latest AS (SELECT id, bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts)) SELECT sum(bid) FROM latest;
WITH latest AS MATERIALIZED (SELECT * FROM quote WHERE bid < 12) SELECT id, bid FROM trade t JOIN latest q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tie => q.seq) ORDER BY id;
SELECT id, (SELECT bid FROM (SELECT t.ts) w JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= w.ts)) AS bid FROM trade t ORDER BY id;
SELECT id FROM trade t WHERE EXISTS (SELECT FROM (SELECT t.ts) w JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= w.ts)) ORDER BY id;
SELECT id, w.bid FROM trade t, LATERAL (SELECT q.bid FROM (SELECT t.ts) u LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= u.ts)) w ORDER BY id;
SELECT 1 AS id, NULL AS bid UNION ALL SELECT id, bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY 1, 2;
SELECT t.sym, count(*), sum(q.bid) FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) GROUP BY t.sym, q.sym HAVING count(q) > 0 ORDER BY 1;
SELECT t.id, b.bid AS before, a.bid AS after FROM trade t
    LEFT JOIN quote b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) LEFT JOIN quote a ON a.sym = b.sym AND lanes.asof(a.ts > b.ts) ORDER BY id;
SELECT id, q.bid, r.bid FROM trade t LEFT JOIN (quote q JOIN quote_heap r USING (sym, ts)) ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts, tie => (q.seq, r.seq)) ORDER BY id;
SELECT id, x FROM trade t LEFT JOIN (quote q LEFT JOIN quote_heap r USING (sym, ts)) x ON x.sym = t.sym AND lanes.asof(x.ts <= t.ts, tie => (x.*)::text) ORDER BY id;
SELECT id, o.bid FROM trade t LEFT JOIN (quote o JOIN (quote i JOIN quote_heap j ON i.sym = j.sym AND lanes.asof(j.ts < i.ts)) ON o.seq = i.seq) ON o.sym = t.sym AND lanes.asof(o.ts <= t.ts) ORDER BY id;
SELECT h.step, t.id, q.bid FROM trade t CROSS JOIN (VALUES (interval '0'), ('10 s')) h(step) JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts + h.step) WHERE isfinite(t.ts) ORDER BY 2, 1;
SELECT sym, q.* FROM trade t JOIN (SELECT ts, seq FROM quote WHERE sym = 'A' OFFSET 0) q ON lanes.asof(q.ts <= t.ts, tie => q.seq) WHERE id = 1;
SELECT a, b, o FROM generate_series(1, 7, 3) a LEFT JOIN ROWS FROM (generate_series(2, 6, 2)) WITH ORDINALITY v(b, o) ON lanes.asof(b <= a) ORDER BY a;
SELECT a, b FROM generate_series(1, 3) a LEFT JOIN LATERAL generate_series(a - 2, a + 2, 2) b ON lanes.asof(b < a) ORDER BY a;
CREATE TABLE kept AS SELECT id, bid FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts);
INSERT INTO kept SELECT id + 100, bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts > t.ts);
UPDATE kept k SET bid = -q.bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) WHERE k.id = t.id;
DELETE FROM kept k USING trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts > t.ts) WHERE k.id = t.id + 100 AND q.bid = 13;
SELECT * FROM kept ORDER BY id, bid;
COPY (SELECT id, bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id) TO STDOUT;
BEGIN;
DECLARE c CURSOR FOR SELECT id, bid FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id;
FETCH 2 FROM c;
COMMIT;
CREATE FUNCTION quote_at(timestamptz, text) RETURNS float8 LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT q.bid FROM (SELECT $1 AS ts) t JOIN quote q ON q.sym = $2 AND lanes.asof(q.ts <= t.ts)); END $$;
SELECT id, quote_at(ts, sym) FROM trade ORDER BY id;
CREATE FUNCTION all_matched(timestamptz) RETURNS SETOF float8 LANGUAGE sql AS
$$ SELECT q.bid FROM (SELECT $1 AS ts) t JOIN quote q ON lanes.asof(q.ts <= t.ts) $$;
SELECT * FROM all_matched('2024-01-01 00:00:12');
SELECT id FROM trade t JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id FOR UPDATE OF t;

-- Right sides other than plain tables: dropped columns, child tables, samples, whole rows.
ALTER TABLE quote_heap ADD COLUMN note text DEFAULT 'n', DROP COLUMN bid;
SELECT id, q, q.* FROM trade t LEFT JOIN quote_heap q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) WHERE id < 4 ORDER BY id;
CREATE TABLE part (ts timestamptz, v int) PARTITION BY RANGE (ts);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (MINVALUE) TO ('2024-01-01 00:00:10');
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM ('2024-01-01 00:00:10') TO (MAXVALUE);
INSERT INTO part SELECT ts, seq FROM quote WHERE ts IS NOT NULL;
SELECT id, p.v FROM trade t LEFT JOIN part p ON lanes.asof(p.ts <= t.ts) ORDER BY id;
SELECT id, s.v FROM trade t LEFT JOIN part s TABLESAMPLE bernoulli (100) ON lanes.asof(s.ts <= t.ts) ORDER BY id;

-- Row-level security and privileges of the right side apply.
CREATE ROLE regress_asof;
GRANT SELECT ON trade TO regress_asof;
GRANT SELECT (ts, sym, bid) ON quote TO regress_asof;
ALTER TABLE quote ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON quote TO regress_asof USING (bid <> 11 AND EXISTS (SELECT FROM trade s WHERE s.sym = quote.sym));
SET ROLE regress_asof;
SELECT id, q.bid FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts) ORDER BY id;
SELECT id, q.bid FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof_nearest(q.ts, t.ts) ORDER BY id;
SELECT id, q.seq FROM trade t LEFT JOIN quote q ON q.sym = t.sym AND lanes.asof(q.ts <= t.ts);
SELECT id FROM trade t LEFT JOIN quote q ON lanes.asof(q.seq <= t.id);
SELECT id FROM trade t LEFT JOIN quote_heap q ON lanes.asof(q.ts <= t.ts);
RESET ROLE;
ALTER TABLE quote DISABLE ROW LEVEL SECURITY;

-- Accelerated joins: the marker's form and the form written by hand, over a sufficiently large
-- lanes table.
CREATE TABLE tick (id int, ts timestamptz, sym text, px float8);
CREATE TABLE book (ts timestamptz, sym text, bid float8, seq int);
INSERT INTO tick SELECT i, timestamptz '2024-01-01' + i * interval '3 s', 'S' || i % 7, i FROM generate_series(1, 2000) i;
INSERT INTO book SELECT timestamptz '2024-01-01' + i / 3 * interval '5 s', 'S' || i % 5, i, i % 11 FROM generate_series(1, 3000) i;
INSERT INTO book SELECT timestamptz '2024-01-01' + i * interval '500 s', 'S' || i % 5, -i, NULL FROM generate_series(1, 10) i; -- late
ANALYZE tick, book;
CREATE FUNCTION pg_temp.same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plain text; fast text;
BEGIN
    EXECUTE 'SET LOCAL lanes.enable_asof = off';
    EXECUTE 'SELECT md5(string_agg(x::text, chr(10) ORDER BY x::text)) || '' '' || count(*) FROM (' || query || ') x' INTO plain;
    EXECUTE 'SET LOCAL lanes.enable_asof = on';
    EXECUTE 'SELECT md5(string_agg(x::text, chr(10) ORDER BY x::text)) || '' '' || count(*) FROM (' || query || ') x' INTO fast;
    RETURN CASE WHEN plain = fast THEN 'same, ' || split_part(fast, ' ', 2) || ' rows' ELSE 'different' END;
END $$;
EXPLAIN (COSTS OFF) SELECT t.id, b.bid FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => '5 s', tie => b.seq);
SELECT pg_temp.same('SELECT t.id, b FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => ''5 s'', tie => b.seq)');
SELECT pg_temp.same('SELECT t.id, b.* FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts > t.ts)');
SELECT pg_temp.same('SELECT t.id, b.* FROM tick t JOIN book b ON lanes.asof(b.ts >= t.ts) AND b.seq > 3 AND b.bid > t.px');
EXPLAIN (COSTS OFF) SELECT t.id, b.bid FROM tick t JOIN LATERAL
    (SELECT bid, ts FROM book WHERE sym = t.sym AND ts <= t.ts AND seq <> 4 AND bid > t.px ORDER BY ts DESC, seq NULLS FIRST LIMIT 1) b ON true WHERE b.bid < t.px * 2;
SELECT pg_temp.same('SELECT t.id, b.bid FROM tick t JOIN LATERAL
    (SELECT bid, ts FROM book WHERE sym = t.sym AND ts <= t.ts AND seq <> 4 AND bid > t.px ORDER BY ts DESC, seq NULLS FIRST, ctid LIMIT 1) b ON true WHERE b.bid < t.px * 2');
SELECT pg_temp.same('SELECT t.id, b.bid FROM tick t LEFT JOIN LATERAL
    (SELECT * FROM book WHERE sym IS NOT DISTINCT FROM t.sym AND ts > t.ts ORDER BY ts, seq DESC NULLS LAST, ctid DESC LIMIT 1) b ON true WHERE b.bid IS NULL OR t.id % 2 = 0');
SELECT pg_temp.same('SELECT t.id, a.bid AS a, b.bid AS b FROM tick t LEFT JOIN book a ON a.sym = t.sym AND lanes.asof(a.ts <= t.ts) LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts > a.ts)');
SELECT pg_temp.same('SELECT s.n, (SELECT sum(b.bid) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE t.id < s.n) FROM generate_series(1, 2000, 500) s(n)');
-- Joins of another form have PostgreSQL's plan.
EXPLAIN (COSTS OFF) SELECT t.id, b.bid FROM tick t JOIN LATERAL (SELECT bid FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 2) b ON true;
EXPLAIN (COSTS OFF) SELECT t.id, b.one FROM tick t JOIN LATERAL (SELECT bid + 1 AS one FROM book WHERE sym = t.sym AND ts <= t.ts ORDER BY ts DESC LIMIT 1) b ON true;
-- Prepared, with a cursor, with row locks on the left side, in parallel; and a plan that is
-- invalidated by a changed table.
PREPARE near(interval) AS SELECT sum(b.bid), count(*) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts, tolerance => $1);
SET plan_cache_mode = force_generic_plan;
EXECUTE near('2 s');
EXECUTE near('200 s');
EXECUTE near('-2 s');
DELETE FROM book WHERE seq IS NULL;
EXECUTE near('200 s');
ALTER TABLE book DROP COLUMN seq;
EXECUTE near('200 s');
RESET plan_cache_mode;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT t.id, b.bid FROM tick t LEFT JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) WHERE t.id < 4 ORDER BY t.id;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
SELECT sum(bid) FROM (SELECT b.bid FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts) FOR UPDATE OF t) x;
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT sum(b.bid), count(*) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- With row-level security the join is not accelerated, and the policy applies. Privileges are
-- checked as usual.
ALTER TABLE book ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON book TO regress_asof USING (bid > 1000);
GRANT SELECT ON tick TO regress_asof;
SET ROLE regress_asof;
SELECT count(b.bid) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET ROLE;
GRANT SELECT (sym, ts, bid) ON book TO regress_asof;
SET ROLE regress_asof;
EXPLAIN (COSTS OFF) SELECT count(b.bid) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT min(b.bid) > 1000 AS filtered FROM (SELECT * FROM tick WHERE id < 900) t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts >= t.ts);
RESET ROLE;
ALTER TABLE book DISABLE ROW LEVEL SECURITY;
REVOKE SELECT (bid) ON book FROM regress_asof;
SET ROLE regress_asof;
SELECT count(b.bid) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
SELECT count(b.ts) FROM tick t JOIN book b ON b.sym = t.sym AND lanes.asof(b.ts <= t.ts);
RESET ROLE;

-- Refused queries.
SELECT FROM trade t RIGHT JOIN quote q ON lanes.asof(q.ts <= t.ts);
SELECT FROM trade t FULL JOIN quote q ON lanes.asof(q.ts <= t.ts);
SELECT FROM trade t, quote q WHERE lanes.asof(q.ts <= t.ts);
SELECT lanes.asof(q.ts <= t.ts) FROM trade t, quote q;
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts) OR q.sym = t.sym;
SELECT FROM trade t JOIN quote q ON NOT lanes.asof(q.ts <= t.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts) AND lanes.asof(q.bid <= t.px);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts = t.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <> t.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= q.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(t.ts <= t.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts - t.ts <= interval '1 s');
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts BETWEEN t.ts - interval '1 s' AND t.ts);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.sym <= t.sym);
SELECT FROM trade t JOIN quote q ON lanes.asof(true);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.bid + random() <= t.px);
SELECT FROM trade t JOIN quote q ON lanes.asof_nearest(q.sym, t.sym);
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tie => 'x');
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts, tie => point(q.bid, 0));
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts) FOR UPDATE;
SELECT FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts) FOR SHARE OF q;
SELECT q.ctid FROM trade t JOIN quote q ON lanes.asof(q.ts <= t.ts);
SELECT lanes.asof(true);


DROP VIEW matched;
DROP FUNCTION quote_at, all_matched;
DROP TABLE trade, quote, quote_heap, kept, part, tick, book;
DROP ROLE regress_asof;

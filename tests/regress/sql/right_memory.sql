-- Joins by time count the memory of their right sides at run time. Beyond the limit PostgreSQL's
-- own plan takes over.
CREATE SCHEMA right_memory;
SET search_path = right_memory; SET default_table_access_method = lanes; SET timezone = 'UTC'; SET max_parallel_workers_per_gather = 0;
-- One left row is late, in the second vector. Many right rows fall within one second, and they have
-- twelve columns.
CREATE TABLE l (id int, ts timestamptz, k int, name text);
INSERT INTO l SELECT i, '2026-01-01'::timestamptz + (CASE i WHEN 2080 THEN 10 ELSE i END) * interval '1 s', i % 3, md5((i % 700)::text)
  FROM generate_series(1, 2100) i;
CREATE TABLE r (ts timestamptz, k int, a int, b int, c int, d int, e int, f int, g int, h int, i int, j int);
INSERT INTO r SELECT '2026-01-01'::timestamptz + (CASE WHEN i < 1000 THEN i * interval '2 s' ELSE interval '2060 s' + i * interval '90 us' END), i % 3,
  i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7, i + 8, i + 9 FROM generate_series(1, 11000) i;
-- Texts longer than the planner estimates, and many keys.
CREATE TEMPORARY TABLE t (ts timestamptz, name text, note text); -- Autovacuum would update the planner's statistics.
INSERT INTO t SELECT '2026-01-01'::timestamptz + i * interval '1 s', md5(i::text), repeat(i::text, 100) FROM generate_series(1, 5000) i;
CREATE TABLE n (ts timestamptz, name text, v int);
INSERT INTO n SELECT '2026-01-01'::timestamptz + i * interval '1 s', md5(i::text) || md5(i::text) || repeat('x', 100), i FROM generate_series(1, 5000) i;
INSERT INTO n SELECT '2026-01-01'::timestamptz + (5000 + i) * interval '1 s', md5(i::text), i FROM generate_series(1, 700) i;
-- The same rows with indexes, for PostgreSQL's joins.
CREATE SCHEMA heap;
SET default_table_access_method = heap;
CREATE TABLE heap.l AS TABLE l;
CREATE TABLE heap.r AS TABLE r; CREATE INDEX ON heap.r (k, ts); CREATE INDEX ON heap.r (ts);
CREATE TABLE heap.t AS TABLE t; CREATE INDEX ON heap.t (ts);
CREATE TABLE heap.n AS TABLE n; CREATE INDEX ON heap.n (name, ts);
ANALYZE heap.l, heap.r, heap.t, heap.n;

-- Returns the node that hands over, the number of rows by EXPLAIN, and whether its answers equal
-- those of heap tables.
CREATE FUNCTION pg_temp.joined(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; nodes text[]; ours text; theirs text;
  hashed text := 'SELECT count(*) || '' '' || coalesce(md5(string_agg(q::text, '','' ORDER BY q::text)), '''') FROM (' || query || ') q';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
        IF line ~ 'Custom Scan \((LanesAsofJoin|LanesTimeJoin|LanesAggregate)' THEN
            nodes := nodes || substring(line FROM 'Custom Scan \((\w+)\)');
        ELSIF line ~ 'Handed Over' THEN
            nodes[cardinality(nodes)] := nodes[cardinality(nodes)] || ' hands over ';
        ELSIF line ~ '-> .*Nested Loop' AND nodes[1] ~ 'over $' THEN
            nodes[1] := nodes[1] || substring(line FROM 'actual rows=(\d+)');
        END IF;
    END LOOP;
    EXECUTE hashed INTO ours;
    SET LOCAL search_path = heap, pg_temp; SET LOCAL work_mem = '64MB';
    EXECUTE hashed INTO theirs;
    RETURN concat_ws(': ', nodes[1], CASE WHEN ours = theirs THEN 'rows ' || split_part(ours, ' ', 1) ELSE format('%s, not %s', ours, theirs) END);
END $$;

SET work_mem = '64kB'; SET hash_mem_multiplier = 1;
-- Texts in memory.
SELECT pg_temp.joined('SELECT l.id, q.note FROM l LEFT JOIN t q ON lanes.asof(q.ts < l.ts) WHERE l.id > 1500');
SELECT pg_temp.joined('SELECT l.id, q.note FROM l JOIN t q ON lanes.asof(q.ts >= l.ts) WHERE l.id > 1500');
-- A right side that is read into memory before the first row is returned.
SELECT pg_temp.joined('SELECT l.id, q.a, q.b, q.c, q.d, q.e, q.f, q.g, q.h, q.i, q.j FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts > l.ts) WHERE l.id % 20 = 0');
-- A right side that is read at a late left row: the rows before it have been returned.
SELECT pg_temp.joined('SELECT l.id, q.a, q.b, q.c, q.d, q.e, q.f, q.g, q.h, q.i, q.j FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts)');
SELECT pg_temp.joined('SELECT l.id, q.a, q.b, q.c, q.d, q.e, q.f, q.g, q.h, q.i, q.j FROM l JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts) WHERE l.id > 100 AND l.id % 3 > 0');
-- Keys.
SELECT pg_temp.joined('SELECT l.id, q.v FROM l LEFT JOIN n q ON q.name = l.name AND lanes.asof(q.ts <= l.ts + interval ''1 h'')');
-- Rows of a time window.
SELECT pg_temp.joined('SELECT l.id, w.* FROM l LEFT JOIN LATERAL (SELECT count(*), sum(a) AS a, sum(b) AS b, sum(c) AS c, sum(d) AS d, sum(e) AS e, sum(f) AS f, sum(g) AS g, sum(h) AS h, max(i) AS i, min(j) AS j
  FROM r WHERE r.k = l.k AND r.ts BETWEEN l.ts - interval ''9 s'' AND l.ts) w ON true WHERE l.id <> 2080');
-- Aggregates of all of these.
SELECT pg_temp.joined('SELECT count(*), sum(q.a), sum(q.b), sum(q.c), sum(q.d), sum(q.e), sum(q.f), sum(q.g), sum(q.h), sum(q.i), sum(q.j) FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts)');
SELECT pg_temp.joined('SELECT l.k, count(q.v), sum(q.v) FROM l LEFT JOIN n q ON q.name = l.name AND lanes.asof(q.ts <= l.ts + interval ''1 h'') GROUP BY l.k');
-- Rescans with other parameters, and with the same ones.
SELECT pg_temp.joined('SELECT o, (SELECT sum(v) FROM (SELECT q.a + q.b + q.c + q.d + q.e + q.f + q.g + q.h + q.i + q.j AS v FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts) WHERE l.id > o * 2060 OFFSET 0) q) FROM generate_series(0, 1) o');
SELECT pg_temp.joined('SELECT o, (SELECT sum(length(v)) FROM (SELECT q.note AS v FROM l LEFT JOIN t q ON lanes.asof(q.ts <= l.ts) WHERE l.id > o * 100 + 1500 OFFSET 0) q) FROM generate_series(0, 1) o');
SELECT pg_temp.joined('SELECT o, q.c FROM generate_series(1, 2) o LEFT JOIN LATERAL (SELECT count(a + b + c + d + e + f + g + h + i + j) AS c FROM (SELECT q.* FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts) OFFSET 0) q) q ON q.c > o');
-- A cursor, before and after the handover.
CREATE VIEW near AS SELECT l.id, q.a, q.b, q.c, q.d, q.e, q.f, q.g, q.h, q.i, q.j FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts);
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, a, j FROM near;
FETCH 1 FROM c;
MOVE 2045 FROM c;
FETCH 4 FROM c;
MOVE FORWARD ALL FROM c;
ROLLBACK;
PREPARE past(int) AS SELECT count(a + b + c + d + e + f + g + h + i + j), sum(a) FROM (SELECT * FROM near WHERE id > $1 OFFSET 0) q;
SET plan_cache_mode = force_generic_plan;
EXECUTE past(10); EXECUTE past(2098); EXECUTE past(10);
RESET plan_cache_mode;
-- With more memory nothing is handed over.
SET work_mem = '4MB';
SELECT pg_temp.joined('SELECT l.id, q.note FROM l LEFT JOIN t q ON lanes.asof(q.ts < l.ts) WHERE l.id > 1500');
SELECT pg_temp.joined('SELECT l.id, q.a, q.b, q.c, q.d, q.e, q.f, q.g, q.h, q.i, q.j FROM l LEFT JOIN r q ON q.k = l.k AND lanes.asof(q.ts <= l.ts)');
SET client_min_messages = warning;
DROP SCHEMA right_memory, heap CASCADE;

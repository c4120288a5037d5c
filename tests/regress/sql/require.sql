-- lanes.vectorize = require with nested planning that fails inside: earlier findings are kept.
CREATE TABLE l (i int, note numeric) USING lanes;
INSERT INTO l SELECT i, i FROM generate_series(1, 10) i;
CREATE FUNCTION fails(query text) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN EXECUTE query; RETURN 0; EXCEPTION WHEN OTHERS THEN RETURN 1; END $$;
SET lanes.vectorize = require;
-- The first sub-select is not vectorised. Planning the second one plans another query, which fails.
SELECT * FROM (SELECT sum(note ORDER BY random()) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT sum(note ORDER BY random()) FROM l') OFFSET 0) b;
SELECT * FROM (SELECT sum(note ORDER BY random()) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT i / 0 FROM l WHERE 1 / 0 = 1') OFFSET 0) b;
-- Only the inner query is not vectorised, and it does not matter.
SELECT * FROM (SELECT sum(i) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT sum(note ORDER BY random()) FROM l') OFFSET 0) b;
SELECT fails('SELECT sum(i) FROM l'), fails('SELECT sum(note ORDER BY random()) FROM l'), sum(i) FROM l;
RESET lanes.vectorize;
EXPLAIN (COSTS OFF) SELECT * FROM (SELECT sum(note ORDER BY random()) FROM l OFFSET 0) a, (SELECT i FROM l WHERE i = fails('SELECT 1 / 0') OFFSET 0) b;
-- A planning error in a cursor's query does not affect the cursor's kind.
BEGIN;
EXPLAIN (COSTS OFF) DECLARE back CURSOR FOR SELECT i FROM l WHERE i = fails('SELECT 1 / 0');
SAVEPOINT s;
SELECT 1 / 0 FROM l;
ROLLBACK TO s;
EXPLAIN (COSTS OFF) DECLARE onward NO SCROLL CURSOR FOR SELECT i FROM l;
COMMIT;
DROP FUNCTION fails; DROP TABLE l;
-- Joins by time whose rows are not vectorised report the reason, and require refuses them. The
-- reason is shown at their left side, or at their right side if the left is not a lanes table.
CREATE TABLE l (ts timestamptz, k int, note text) USING lanes;
CREATE TABLE r (ts timestamptz, k int, v int, note text) USING lanes;
CREATE TABLE h (ts timestamptz, k int) USING heap;
CREATE VIEW rv AS SELECT * FROM r WHERE v > 3 OFFSET 0;
INSERT INTO l SELECT '2026-01-01'::timestamptz + i * interval '1 s', 1, 'a' FROM generate_series(1, 100) i;
INSERT INTO r SELECT ts, k, 1, 'b' FROM l;
INSERT INTO h SELECT ts, k FROM l;
ANALYZE l, r, h;
CREATE FUNCTION pg_temp.why(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; node text := 'nested loop'; reason text := ''; required text := 'accepted';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        node := coalesce(substring(line FROM 'LanesTimeJoin|LanesAsofJoin'), node);
        reason := coalesce(substring(line FROM 'Not Vectorised: .*'), reason);
    END LOOP;
    PERFORM set_config('lanes.vectorize', 'require', true);
    BEGIN EXECUTE 'EXPLAIN ' || query; EXCEPTION WHEN feature_not_supported THEN required := SQLERRM; END;
    PERFORM set_config('lanes.vectorize', 'on', true);
    RETURN concat_ws(E'\n', node, reason, required);
END $$;
\pset tuples_only on
SELECT pg_temp.why('SELECT l.ts, r.v FROM l LEFT JOIN r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT pg_temp.why('SELECT l.ts, r.note FROM l LEFT JOIN r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT pg_temp.why('SELECT l.ts, r.note FROM h l LEFT JOIN r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT pg_temp.why('SELECT l.ts, r.v FROM l LEFT JOIN r ON r.k = l.k AND lanes.asof_nearest(r.ts, l.ts)');
SELECT pg_temp.why('SELECT l.ts, r.v FROM h l LEFT JOIN r ON r.k = l.k AND lanes.asof_nearest(r.ts, l.ts)');
SELECT pg_temp.why('SELECT l.ts, r.v FROM l LEFT JOIN rv r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT v FROM r WHERE r.k = l.k AND r.ts <= l.ts ORDER BY ts DESC LIMIT 2) q');
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT avg(v) FROM r WHERE r.k = l.k AND r.ts <= l.ts) q');
SELECT pg_temp.why('SELECT l.ts, q.* FROM h l, LATERAL (SELECT sum(v) FROM r WHERE r.k = l.k AND r.ts <= l.ts) q');
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT sum(v) FROM r WHERE r.k = l.k AND r.ts <= l.ts) q FOR UPDATE OF l');
-- One of two joins is not vectorised; operations on the rows of a join.
SELECT pg_temp.why('SELECT l.ts, q.s, p.a FROM l, LATERAL (SELECT sum(v) s FROM r WHERE r.k = l.k AND r.ts <= l.ts) q, LATERAL (SELECT avg(v) a FROM r WHERE r.k = l.k AND r.ts > l.ts) p');
SELECT pg_temp.why('SELECT sum(q.s::numeric) FROM l, LATERAL (SELECT sum(v) s FROM r WHERE r.k = l.k AND r.ts <= l.ts) q');
-- Joins that are not by time, or not over a lanes table.
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT avg(v) FROM r WHERE r.k = l.k) q');
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT count(*) FROM r WHERE r.k = l.k AND r.v < 3) q');
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT k FROM h WHERE h.k = l.k AND h.ts <= l.ts ORDER BY ts DESC LIMIT 1) q');
SET lanes.enable_asof = off;
SELECT pg_temp.why('SELECT l.ts, q.* FROM l, LATERAL (SELECT avg(v) FROM r WHERE r.k = l.k AND r.ts <= l.ts) q');
RESET lanes.enable_asof;
\pset tuples_only off
DROP VIEW rv; DROP TABLE l, r, h;

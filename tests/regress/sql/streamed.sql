-- Sealed rows in memory in their stored form: only those columns of a vector that a query reads are
-- decoded.
SET lanes.decode_after = 2147483647;
SET max_parallel_workers_per_gather = 0;
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION decoded(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(line) FROM pg_temp.explained(query, 'Decoded|Streamed|Algorithm') line $$;
-- A third of the rows are in 32 small segments, the others in 64 vectors with one value of k each.
CREATE TABLE seen (k int, ts timestamp, v float8, w float8, note text, flag bool) USING lanes WITH (order_by = 'k, ts');
INSERT INTO seen SELECT g % 96, timestamp '2026-01-01' + g * interval '1 s', sqrt(g), -sqrt(g % 1000), 'n' || g % 7, g % 3 = 0
    FROM generate_series(0, 196607) g;
SELECT lanes.seal('seen');
-- Half of these rows are in small segments.
CREATE TABLE late (k int, ts timestamp, v float8, w float8, note text) USING lanes WITH (order_by = 'ts');
INSERT INTO late SELECT g % 5, timestamp '2026-01-01' + g * interval '1 s', sqrt(g), g / 100.0, 'n' FROM generate_series(0, 131071) g;
SELECT lanes.seal('late');

-- No row passes: only the qual's column is decoded.
SELECT decoded('SELECT v, note FROM seen WHERE w + 1 > 1');
SELECT decoded('SELECT sum(v), max(note) FROM seen WHERE w + 1 > 1');
-- Zones leave one vector of the columns in the quals.
SELECT decoded('SELECT ts, v, w FROM seen WHERE k = 70 AND flag');
SELECT decoded('SELECT count(*) FROM seen WHERE k = 70');
-- The first rows: the order's column is decoded first, then the returned rows.
SELECT decoded('SELECT * FROM seen ORDER BY k DESC LIMIT 3');
SELECT k, v, note FROM seen ORDER BY k DESC, ts LIMIT 3;
-- Vectors whose bounds exclude them from the first rows are not decoded.
SELECT decoded('SELECT ts, v FROM late ORDER BY w DESC LIMIT 2');
-- The last row of each group: keys and times are decoded first, then the single row, except for
-- texts.
SELECT decoded('SELECT DISTINCT ON (k) k, ts, v, note FROM seen ORDER BY k, ts DESC');
-- A window: times are decoded first, then the arguments.
SELECT decoded('SELECT ts, lanes.delta(v) OVER (ORDER BY ts) FROM late');
-- Joins by time: both sides; the order of the right side is read first.
SELECT decoded('SELECT sum(l.v), sum(r.w) FROM seen l LEFT JOIN seen r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded('SELECT sum(l.v), sum(r.w) FROM late l LEFT JOIN late r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded('SELECT l.note, r.w FROM late l LEFT JOIN late r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded($$SELECT sum(w.s) FROM late l LEFT JOIN LATERAL
    (SELECT sum(r.v) s FROM late r WHERE r.k = l.k AND r.ts BETWEEN l.ts - interval '5 s' AND l.ts + interval '5 s') w ON true$$);

-- The answers are the same after everything is decoded.
CREATE TEMP VIEW answers AS
    SELECT 'filter' AS what, sum(v)::numeric(20, 6) AS a, count(*) AS b FROM seen WHERE w < -30 AND note = 'n3'
    UNION ALL SELECT 'top', sum(v)::numeric(20, 6), count(*) FROM (SELECT v FROM seen ORDER BY w, ts LIMIT 10) t
    UNION ALL SELECT 'latest', sum(v)::numeric(20, 6), count(*) FROM (SELECT DISTINCT ON (k) v FROM seen ORDER BY k, ts DESC) t
    UNION ALL SELECT 'window', sum(d)::numeric(20, 6), count(d) FROM (SELECT lanes.delta(v) OVER (ORDER BY ts) AS d FROM late) t
    UNION ALL SELECT 'asof', sum(l.v + r.w)::numeric(20, 6), count(r.w) FROM seen l LEFT JOIN seen r ON r.k = l.k AND lanes.asof(r.ts < l.ts)
    UNION ALL SELECT 'bucket', sum(a)::numeric(20, 6), count(*)
        FROM (SELECT lanes.time_bucket('7 s', ts) AS b, avg(v) AS a FROM seen GROUP BY b) t;
CREATE TEMP TABLE streamed AS SELECT * FROM answers;
SELECT * FROM streamed ORDER BY what;
SET lanes.decode_after = 0;
SELECT count(*) FROM streamed NATURAL JOIN answers;
RESET lanes.decode_after;
RESET max_parallel_workers_per_gather;
DROP VIEW answers;
DROP TABLE streamed, seen, late;
DROP FUNCTION decoded;

-- Sealed rows in memory as they are stored: of each vector only those columns are decoded that somebody looks at.
SET lanes.decode_after = 2147483647;
SET max_parallel_workers_per_gather = 0;
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION decoded(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT trim(line) FROM pg_temp.explained(query, 'Decoded|Streamed|Algorithm') line $$;
-- A third of the rows lie in 32 small segments, the others in 64 vectors, each of one k.
CREATE TABLE seen (k int, ts timestamp, v float8, w float8, note text, flag bool) USING lanes WITH (order_by = 'k, ts');
INSERT INTO seen SELECT g % 96, timestamp '2026-01-01' + g * interval '1 s', sqrt(g), -sqrt(g % 1000), 'n' || g % 7, g % 3 = 0
    FROM generate_series(0, 196607) g;
SELECT lanes.seal('seen');
-- Half of these lie in small segments.
CREATE TABLE late (k int, ts timestamp, v float8, w float8, note text) USING lanes WITH (order_by = 'ts');
INSERT INTO late SELECT g % 5, timestamp '2026-01-01' + g * interval '1 s', sqrt(g), g / 100.0, 'n' FROM generate_series(0, 131071) g;
SELECT lanes.seal('late');

-- No row passes: only what the qual looks at.
SELECT decoded('SELECT v, note FROM seen WHERE w + 1 > 1');
SELECT decoded('SELECT sum(v), max(note) FROM seen WHERE w + 1 > 1');
-- Zones leave one vector of the columns that are looked at.
SELECT decoded('SELECT ts, v, w FROM seen WHERE k = 70 AND flag');
SELECT decoded('SELECT count(*) FROM seen WHERE k = 70');
-- The first rows: a look at the order, then the rows that are returned.
SELECT decoded('SELECT * FROM seen ORDER BY k DESC LIMIT 3');
SELECT k, v, note FROM seen ORDER BY k DESC, ts LIMIT 3;
-- Nobody reads floats whose bounds say that they are not among the first.
SELECT decoded('SELECT ts, v FROM late ORDER BY w DESC LIMIT 2');
-- The last of each group: keys and times, then the rest of its row alone, but for text.
SELECT decoded('SELECT DISTINCT ON (k) k, ts, v, note FROM seen ORDER BY k, ts DESC');
-- A window: times first, then what it takes.
SELECT decoded('SELECT ts, lanes.delta(v) OVER (ORDER BY ts) FROM late');
-- Joins by time: both sides; of the right one, the order is looked at first.
SELECT decoded('SELECT sum(l.v), sum(r.w) FROM seen l LEFT JOIN seen r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded('SELECT sum(l.v), sum(r.w) FROM late l LEFT JOIN late r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded('SELECT l.note, r.w FROM late l LEFT JOIN late r ON r.k = l.k AND lanes.asof(r.ts <= l.ts)');
SELECT decoded($$SELECT sum(w.s) FROM late l LEFT JOIN LATERAL
    (SELECT sum(r.v) s FROM late r WHERE r.k = l.k AND r.ts BETWEEN l.ts - interval '5 s' AND l.ts + interval '5 s') w ON true$$);

-- The same answers as where they are decoded for all.
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

-- Segments in object storage. This session also acts as the gateway: a query that times out has
-- requested the segments that it needs.
CREATE TABLE far (series int, ts timestamptz, v int) USING lanes
    WITH (order_by = 'series, ts', hot = '1 day', autovacuum_enabled = off);
INSERT INTO far SELECT g % 4, '2020-01-01 00:00+00'::timestamptz + g * interval '1 s', g FROM generate_series(0, 199999) g;
CREATE TABLE objects (key text PRIMARY KEY, image bytea) USING heap;
CREATE FUNCTION serve() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    wanted text;
    served bigint := 0;
BEGIN
    FOR wanted IN SELECT key FROM lanes.recall_next('0') LOOP
        PERFORM lanes.recall_supply(wanted, (SELECT image FROM objects WHERE key = wanted));
        served := served + 1;
    END LOOP;
    RETURN served;
END $$;
\getenv suite PG_ABS_SRCDIR
\set explain :suite '/include/explain.sql'
\i :explain
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT regexp_replace(trim(line), 'Bytes Recalled: [1-9]\d+', 'Bytes Recalled: N') FROM pg_temp.explained(query, 'Segments|Bytes|Hits') line $$;

-- Open rows, younger rows, and rows of tables without `hot` are not due.
SELECT count(*) FROM lanes.offload_list(100);
SELECT lanes.seal('far');
ALTER TABLE far SET (hot = '100 years');
SELECT count(*) FROM lanes.offload_list(100);
ALTER TABLE far RESET (hot);
SELECT count(*) FROM lanes.offload_list(100);
ALTER TABLE far SET (hot = '1 day');
SELECT target, count(*), sum(rows), count(DISTINCT part), bool_and(bytes > 0) FROM lanes.offload_list(1) GROUP BY target;
SELECT part FROM lanes.offload_list(1) LIMIT 1 \gset
INSERT INTO objects SELECT key, lanes.segment_image(target, o.part, first_row) FROM lanes.offload_list(1) o;
SELECT count(*) FROM objects o JOIN lanes.offload_list(1) d USING (key) WHERE length(o.image) = d.bytes;
SELECT count(*) FROM lanes.remote_keys();

-- The segment is remote for every session. Repeating the commit has the same result.
SELECT lanes.offload_commit('far', :part);
SELECT lanes.offload_commit('far', :part);
SELECT lanes.offload_commit('far', :part + 1);
SELECT count(*) FROM lanes.offload_list(100);
SELECT state, count(*), sum(rows), sum(rows_resident), sum(bytes_stored) FROM lanes.arena_segments('far') GROUP BY state;
SELECT count(*) FROM lanes.remote_keys() k JOIN objects o ON o.key = k;
SELECT lanes.segment_image('far', :part, 0);

-- No gateway recalls the segments. Segments that zones exclude are not requested.
SET lanes.recall_timeout = '20ms';
SELECT count(*) FROM far WHERE series = 77;
SELECT explained('SELECT count(*) FROM far WHERE ts < ''2019-01-01''');
-- Segments whose zones answer the query are not requested either.
SELECT count(*), count(v), min(ts), max(v) FROM far;
SELECT explained('SELECT count(*), count(v), min(ts), max(v) FROM far');
SELECT count(*), sum(v) FROM far WHERE ts < '2021-01-01' AND series <= 3;
SELECT explained('SELECT count(*), sum(v) FROM far WHERE ts < ''2021-01-01'' AND series <= 3');
SELECT serve();
SELECT max(v + 0) FROM far WHERE series = 3;
SELECT serve();
SELECT explained('SELECT max(v + 0) FROM far WHERE series = 3');
SELECT max(v + 0), count(*) FROM far WHERE series = 3;
SELECT explained('SELECT max(v + 0) FROM far WHERE series = 3');

-- The reason of the failure. A query after a failure requests the segment again.
SELECT count(*) FROM far WHERE series = 0;
SELECT lanes.recall_fail(key, 'bucket gone') FROM lanes.recall_next('1 s');
SELECT count(*) FROM far WHERE series = 0;
\set VERBOSITY sqlstate
SELECT lanes.recall_supply(key, 'x') FROM lanes.recall_next('1 s');
\set VERBOSITY default
-- A segment of another table is refused although it is intact. A waiting query reports that, and
-- the gateway's own message cannot change it.
CREATE TABLE twin (series int, ts timestamptz, v int) USING lanes
    WITH (order_by = 'series, ts', hot = '1 day', autovacuum_enabled = off);
INSERT INTO twin SELECT g % 4, '2020-01-01 00:00+00'::timestamptz + g * interval '1 s', g + 1 FROM generate_series(0, 199999) g;
SELECT lanes.seal('twin');
CREATE FUNCTION supply_of_twin(wanted text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lanes.recall_supply(wanted, lanes.segment_image('twin', part, first_row))
       FROM lanes.stored_segments('twin') WHERE first_row = split_part(wanted, '/', 5)::bigint;
    RETURN 'supplied';
EXCEPTION WHEN data_corrupted THEN
    PERFORM lanes.recall_fail(wanted, 'the gateway repeats it');
    RETURN regexp_replace(SQLERRM, 'object \S+', 'object …');
END $$;
SELECT count(*) FROM far WHERE series = 0;
SELECT DISTINCT supply_of_twin(key) FROM lanes.recall_next('1 s') AS key;
DROP FUNCTION supply_of_twin;
DROP TABLE twin;
SELECT lanes.recall_supply('1/2/3/4/5', 'x');
SELECT lanes.recall_fail('nonsense', 'x');
-- A request that was taken is not offered again at once.
SELECT count(*) FROM lanes.recall_next('0.01 s');

-- Rows in the file can be read without the remote ones.
INSERT INTO far SELECT 9, now(), g FROM generate_series(1, 10) g;
SET lanes.recall = skip;
SELECT count(*), sum(v) FROM far;
SELECT count(*), sum(v) FROM far WHERE series = 9;
SET lanes.vectorize = off;
SELECT count(*), sum(v) FROM far;
RESET lanes.vectorize;
-- A statement that changes rows waits for remote ones.
DELETE FROM far WHERE series = 0 AND v < 40;
RESET lanes.recall;
-- ANALYZE does not recall segments.
ANALYZE far;
SELECT reltuples FROM pg_class WHERE relname = 'far';

-- The segments are recalled: their rows can be changed, and a rewrite of the table copies them into
-- its new file.
SELECT sum(v + 0) FROM far;
SELECT count(lanes.recall_supply(key, image)::text) FROM objects;
RESET lanes.recall_timeout;
DELETE FROM far WHERE series = 0 AND v < 40;
UPDATE far SET v = -1 WHERE series = 1 AND v < 41;
-- The zones of segments with deleted rows do not answer queries.
SELECT count(*), min(v), max(v) FROM far;
SELECT explained('SELECT count(*), min(v), max(v) FROM far');
SELECT series, count(*), min(v), sum(v) FROM far GROUP BY series ORDER BY series;
SELECT lanes.seal('far');
SELECT state, sum(rows) FROM lanes.arena_segments('far') GROUP BY state ORDER BY state;
VACUUM FULL far;
SELECT count(*) FROM lanes.remote_keys();
SELECT DISTINCT state FROM lanes.arena_segments('far');
SELECT series, count(*), min(v), sum(v) FROM far GROUP BY series ORDER BY series;

-- Invalid settings; privileges for offloading.
CREATE TABLE bad (ts timestamptz) USING lanes WITH (hot = 'never');
CREATE ROLE regress_lanes_gateway;
CREATE ROLE regress_lanes_stranger;
SELECT lanes.grant_gateway('regress_lanes_gateway');
GRANT USAGE ON SCHEMA lanes TO regress_lanes_stranger;
SET ROLE regress_lanes_stranger;
SELECT lanes.remote_keys();
SELECT lanes.recall_next('0');
SELECT lanes.recall_supply('', '');
SELECT lanes.recall_fail('', '');
SELECT lanes.offload_list(1);
SELECT lanes.segment_image('far', 1, 1);
SELECT lanes.offload_commit('far', 1);
RESET ROLE;
SET ROLE regress_lanes_gateway;
SELECT count(*) FROM lanes.remote_keys();
SELECT count(*) FROM lanes.offload_list(1);
RESET ROLE;
DROP OWNED BY regress_lanes_gateway, regress_lanes_stranger;
DROP ROLE regress_lanes_gateway, regress_lanes_stranger;
DROP TABLE far, objects;
DROP FUNCTION serve, explained;

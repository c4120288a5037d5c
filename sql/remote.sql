-- Sealed segments in object storage: the functions by which the gateway moves them there and fetches them for queries.

-- Moving segments to object storage.

CREATE FUNCTION lanes.offload_list(wanted int)
    RETURNS TABLE (target regclass, part bigint, first_row bigint, rows bigint, bytes bigint, key text)
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'offload_list_wrapper';
COMMENT ON FUNCTION lanes.offload_list(int) IS
    'for lanes-gateway: at least so many sealed segments older than the hot of their tables, if there are; whole parts, oldest first';
REVOKE ALL ON FUNCTION lanes.offload_list(int) FROM PUBLIC;

CREATE FUNCTION lanes.part_rows(target regclass, part bigint) RETURNS TABLE (storage_id bigint, first_row bigint, end_row bigint)
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'part_rows_wrapper';
COMMENT ON FUNCTION lanes.part_rows(regclass, bigint) IS
    'for lanes-gateway: the row numbers that a live part covers; no row if the part is no longer live';
REVOKE ALL ON FUNCTION lanes.part_rows(regclass, bigint) FROM PUBLIC;

CREATE FUNCTION lanes.segment_image(target regclass, part bigint, first_row bigint) RETURNS bytea
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'segment_image_wrapper';
COMMENT ON FUNCTION lanes.segment_image(regclass, bigint, bigint) IS
    'for lanes-gateway: the image of a segment that lanes.offload_list() returned';
REVOKE ALL ON FUNCTION lanes.segment_image(regclass, bigint, bigint) FROM PUBLIC;

CREATE FUNCTION lanes.offload_commit(target regclass, part bigint) RETURNS boolean
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'offload_commit_wrapper';
COMMENT ON FUNCTION lanes.offload_commit(regclass, bigint) IS
    'for lanes-gateway: records that all segments of a part are durable in object storage; false if the part should no longer be there';
REVOKE ALL ON FUNCTION lanes.offload_commit(regclass, bigint) FROM PUBLIC;

CREATE FUNCTION lanes.remote_keys() RETURNS SETOF text
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'remote_keys_wrapper';
COMMENT ON FUNCTION lanes.remote_keys() IS
    'for lanes-gateway: the keys of all segments of this database in object storage; other keys of this database are orphans';
REVOKE ALL ON FUNCTION lanes.remote_keys() FROM PUBLIC;

CREATE FUNCTION lanes.local_rows() RETURNS TABLE (target oid, storage_id bigint, first_row bigint, end_row bigint)
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'local_rows_wrapper';
COMMENT ON FUNCTION lanes.local_rows() IS
    'for lanes-gateway: the ranges of rows of all lanes tables that are not in object storage; an empty range for a table without such rows';
REVOKE ALL ON FUNCTION lanes.local_rows() FROM PUBLIC;

-- Rows that were appended after the point at which a timeline was left are not in the database. The first timeline has no
-- history file.
CREATE FUNCTION lanes.timeline_history(OUT timeline oid, OUT file text)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT ('x' || lpad(t.name, 16, '0'))::bit(64)::int8::oid,
           pg_read_file('pg_wal/' || t.name || '.history', 0, 1048576, true)
      FROM (SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)) AS t (name)
$$;
COMMENT ON FUNCTION lanes.timeline_history() IS
    'for lanes-gateway: the current timeline of the database, and its history file as PostgreSQL wrote it; NULL on the first timeline';
REVOKE ALL ON FUNCTION lanes.timeline_history() FROM PUBLIC;

CREATE FUNCTION lanes.data_directory_id() RETURNS text
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'data_directory_id_wrapper';
COMMENT ON FUNCTION lanes.data_directory_id() IS
    'for lanes-gateway: an identifier of the data directory of the cluster, which differs in a copy of it';
REVOKE ALL ON FUNCTION lanes.data_directory_id() FROM PUBLIC;

-- What the keys of objects begin with, by database: a row of this database, and rows of databases that it was copied
-- from by CREATE DATABASE. pg_upgrade copies the table, although it changes the system identifier; pg_dump does not
-- dump its rows. The library reads it as a heap.
CREATE TABLE lanes.object_scopes (
    database          oid  PRIMARY KEY,
    system_identifier int8 NOT NULL
) USING heap;
COMMENT ON TABLE lanes.object_scopes IS
    'the identifier of the cluster in which each database was created; keys of its objects begin with it for good';

INSERT INTO lanes.object_scopes
SELECT d.oid, s.system_identifier FROM pg_catalog.pg_control_system() AS s, pg_catalog.pg_database AS d
 WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database();

CREATE FUNCTION lanes.object_scope() RETURNS text
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'object_scope_wrapper';
COMMENT ON FUNCTION lanes.object_scope() IS
    'for lanes-gateway: what the keys of objects of this database begin with; it stays the same after pg_upgrade';
REVOKE ALL ON FUNCTION lanes.object_scope() FROM PUBLIC;

-- Fetching segments for queries.

CREATE FUNCTION lanes.recall_next(timeout interval) RETURNS TABLE (key text)
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'recall_next_wrapper';
COMMENT ON FUNCTION lanes.recall_next(interval) IS
    'for lanes-gateway: the keys of remote segments that queries of this database wait for; waits for the first of them until the timeout';
REVOKE ALL ON FUNCTION lanes.recall_next(interval) FROM PUBLIC;

CREATE PROCEDURE lanes.recall_wait(timeout interval)
    LANGUAGE c AS 'MODULE_PATHNAME', 'recall_wait_wrapper';
COMMENT ON PROCEDURE lanes.recall_wait(interval) IS
    'for lanes-gateway: waits without a snapshot until lanes.recall_next() has keys, or until the timeout';
REVOKE ALL ON PROCEDURE lanes.recall_wait(interval) FROM PUBLIC;

CREATE FUNCTION lanes.recall_supply(key text, image bytea) RETURNS void
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'recall_supply_wrapper';
COMMENT ON FUNCTION lanes.recall_supply(text, bytea) IS
    'for lanes-gateway: hands over the image of a remote segment that lanes.recall_next() requested';
REVOKE ALL ON FUNCTION lanes.recall_supply(text, bytea) FROM PUBLIC;

CREATE FUNCTION lanes.recall_fail(key text, reason text) RETURNS void
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'recall_fail_wrapper';
COMMENT ON FUNCTION lanes.recall_fail(text, text) IS
    'for lanes-gateway: reports that a remote segment cannot be fetched; queries that wait for it fail with the reason';
REVOKE ALL ON FUNCTION lanes.recall_fail(text, text) FROM PUBLIC;

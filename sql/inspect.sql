-- What operators may look at: the version, the arena, and what tables consist of.

CREATE FUNCTION lanes.version() RETURNS text
    STABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'version_wrapper';
COMMENT ON FUNCTION lanes.version() IS
    'the version of the library, and of the server that it was built for';

CREATE FUNCTION lanes.arena()
    RETURNS TABLE (bytes_total bigint, bytes_used bigint, bytes_largest_free bigint, relations bigint, segments bigint,
                   segment_evictions bigint, relation_evictions bigint, refusals bigint)
    VOLATILE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'arena_wrapper';
COMMENT ON FUNCTION lanes.arena() IS
    'the arena: its size, what is used, what it holds, what had to leave it; no row when the server did not preload the library';

CREATE FUNCTION lanes.arena(target regclass)
    RETURNS TABLE (bytes_max bigint, bytes_used bigint, segment_evictions bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'arena_of_wrapper';
COMMENT ON FUNCTION lanes.arena(regclass) IS
    'what a lanes table may take of the arena (NULL: as much as there is), what it takes, and segments that left for that';

CREATE FUNCTION lanes.arena_segments(target regclass)
    RETURNS TABLE (segment bigint, state text, first_row bigint, rows bigint, rows_dead bigint, rows_resident bigint,
                   runs bigint, bytes_stored bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'segments_wrapper';
COMMENT ON FUNCTION lanes.arena_segments(regclass) IS
    'the segments of a lanes table: rows handed out, dead and in the arena, and the bytes of their runs in pages';

CREATE FUNCTION lanes.stored_segments(target regclass)
    RETURNS TABLE (state text, part bigint, first_row bigint, rows bigint, rows_deleted bigint, rows_resident bigint,
                   runs bigint, bytes_raw bigint, bytes bigint, columns text[], encodings text[], column_bytes bigint[],
                   min_time timestamptz, max_time timestamptz, block bigint, object_key text, in_cold_cache boolean)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'stored_segments_wrapper';
COMMENT ON FUNCTION lanes.stored_segments(regclass) IS
    'what the view lanes.segments says of one table';

CREATE FUNCTION lanes.stored_space(target regclass)
    RETURNS TABLE (bytes bigint, bytes_free bigint, bytes_free_at_end bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'stored_space_wrapper';
COMMENT ON FUNCTION lanes.stored_space(regclass) IS
    'what the view lanes.space says of one table';

CREATE VIEW lanes.space WITH (security_barrier) AS
    SELECT c.oid::regclass AS relation, s.bytes, s.bytes - s.bytes_free AS bytes_used, s.bytes_free, s.bytes_free_at_end
      FROM pg_catalog.pg_class c
           JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'lanes'
           CROSS JOIN LATERAL lanes.stored_space(c.oid) s
     WHERE c.relkind IN ('r', 'm')
       AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
       AND pg_catalog.has_table_privilege(c.oid, 'SELECT');

GRANT SELECT ON lanes.space TO PUBLIC;

COMMENT ON VIEW lanes.space IS 'how much of the file of each lanes table that you may read is in use';
COMMENT ON COLUMN lanes.space.relation IS 'the table';
COMMENT ON COLUMN lanes.space.bytes IS 'bytes of its file';
COMMENT ON COLUMN lanes.space.bytes_used IS
    'bytes of blocks that hold something, or that no VACUUM has found to be free yet';
COMMENT ON COLUMN lanes.space.bytes_free IS 'bytes of blocks that new rows will take';
COMMENT ON COLUMN lanes.space.bytes_free_at_end IS
    'those of them behind everything in use: VACUUM gives them back to the file system';

-- What all lanes tables consist of that the caller may read. It reads indexes of parts and runs that are not sealed; segments
-- themselves it does not read, so what is in object storage stays there.
CREATE VIEW lanes.segments WITH (security_barrier) AS
    SELECT c.oid::regclass AS relation, s.state, s.part, s.first_row, s.rows, s.rows - s.rows_deleted AS rows_live, s.rows_resident,
           s.runs, s.bytes_raw, s.bytes AS bytes_encoded,
           jsonb_object(s.columns, s.encodings) AS encodings,
           (SELECT jsonb_object_agg(n.name, n.bytes) FROM unnest(s.columns, s.column_bytes) AS n(name, bytes)) AS column_bytes,
           s.min_time, s.max_time, s.block, s.object_key, s.in_cold_cache
      FROM pg_catalog.pg_class c
           JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'lanes'
           CROSS JOIN LATERAL lanes.stored_segments(c.oid) s
     WHERE c.relkind IN ('r', 'm')
       AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
       AND pg_catalog.has_table_privilege(c.oid, 'SELECT');

GRANT SELECT ON lanes.segments TO PUBLIC;

COMMENT ON VIEW lanes.segments IS
    'what each lanes table that you may read consists of: sealed segments, and runs that are not sealed yet';
COMMENT ON COLUMN lanes.segments.relation IS 'the table';
COMMENT ON COLUMN lanes.segments.state IS 'open: not sealed yet; sealed: in the table''s file; remote: in object storage';
COMMENT ON COLUMN lanes.segments.part IS 'the sealing that made it';
COMMENT ON COLUMN lanes.segments.rows IS 'rows, deleted ones included';
COMMENT ON COLUMN lanes.segments.rows_live IS 'rows that nobody has deleted';
COMMENT ON COLUMN lanes.segments.rows_resident IS 'rows of it that are in the arena, decoded';
COMMENT ON COLUMN lanes.segments.bytes_raw IS 'bytes of its values, each of them on its own';
COMMENT ON COLUMN lanes.segments.bytes_encoded IS 'bytes that it takes in the file or in object storage';
COMMENT ON COLUMN lanes.segments.encodings IS 'what most of each column is encoded as';
COMMENT ON COLUMN lanes.segments.column_bytes IS 'bytes that each column takes';
COMMENT ON COLUMN lanes.segments.min_time IS 'the oldest time, of the column by which retain and hot go';
COMMENT ON COLUMN lanes.segments.max_time IS 'the newest time';
COMMENT ON COLUMN lanes.segments.block IS 'the block of the table''s file at which it begins';
COMMENT ON COLUMN lanes.segments.object_key IS 'its key in object storage';
COMMENT ON COLUMN lanes.segments.in_cold_cache IS 'whether it has come back from object storage and is at hand';

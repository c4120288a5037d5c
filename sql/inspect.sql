-- Inspection: the version, the arena, and the segments and files of tables.

CREATE FUNCTION lanes.version() RETURNS text
    STABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'version_wrapper';
COMMENT ON FUNCTION lanes.version() IS
    'the version of the library, and the version of the server that it was built for';

CREATE FUNCTION lanes.arena()
    RETURNS TABLE (bytes_total bigint, bytes_used bigint, bytes_largest_free bigint, relations bigint, segments bigint,
                   segment_evictions bigint, relation_evictions bigint, refusals bigint)
    VOLATILE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'arena_wrapper';
COMMENT ON FUNCTION lanes.arena() IS
    'the arena: its size, its use, its contents, and evictions; no row if the server did not preload the library';

CREATE FUNCTION lanes.arena(target regclass)
    RETURNS TABLE (bytes_max bigint, bytes_used bigint, segment_evictions bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'arena_of_wrapper';
COMMENT ON FUNCTION lanes.arena(regclass) IS
    'the bytes of the arena that a lanes table may use (NULL: no limit of its own) and uses, and the segments evicted for that limit';

CREATE FUNCTION lanes.arena_segments(target regclass)
    RETURNS TABLE (segment bigint, state text, first_row bigint, rows bigint, rows_dead bigint, rows_resident bigint,
                   runs bigint, bytes_stored bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'segments_wrapper';
COMMENT ON FUNCTION lanes.arena_segments(regclass) IS
    'the segments of a lanes table: rows that are assigned, dead and in the arena, and the bytes of their runs in pages';

CREATE FUNCTION lanes.stored_segments(target regclass)
    RETURNS TABLE (state text, part bigint, first_row bigint, rows bigint, rows_deleted bigint, rows_resident bigint,
                   runs bigint, bytes_raw bigint, bytes bigint, columns text[], encodings text[], column_bytes bigint[],
                   min_time timestamptz, max_time timestamptz, block bigint, object_key text, in_cold_cache boolean)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'stored_segments_wrapper';
COMMENT ON FUNCTION lanes.stored_segments(regclass) IS
    'the rows of the view lanes.segments for one table';

CREATE FUNCTION lanes.stored_space(target regclass)
    RETURNS TABLE (bytes bigint, bytes_free bigint, bytes_free_at_end bigint)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'stored_space_wrapper';
COMMENT ON FUNCTION lanes.stored_space(regclass) IS
    'the row of the view lanes.space for one table';

CREATE VIEW lanes.space WITH (security_barrier) AS
    SELECT c.oid::regclass AS relation, s.bytes, s.bytes - s.bytes_free AS bytes_used, s.bytes_free, s.bytes_free_at_end
      FROM pg_catalog.pg_class c
           JOIN pg_catalog.pg_am a ON a.oid = c.relam AND a.amname = 'lanes'
           CROSS JOIN LATERAL lanes.stored_space(c.oid) s
     WHERE c.relkind IN ('r', 'm')
       AND NOT pg_catalog.pg_is_other_temp_schema(c.relnamespace)
       AND pg_catalog.has_table_privilege(c.oid, 'SELECT');

GRANT SELECT ON lanes.space TO PUBLIC;

COMMENT ON VIEW lanes.space IS 'the use of the file of each lanes table that you may read';
COMMENT ON COLUMN lanes.space.relation IS 'the table';
COMMENT ON COLUMN lanes.space.bytes IS 'bytes of the file';
COMMENT ON COLUMN lanes.space.bytes_used IS
    'bytes of blocks that are in use, or that no VACUUM has found to be free yet';
COMMENT ON COLUMN lanes.space.bytes_free IS 'bytes of free blocks, which new rows will use';
COMMENT ON COLUMN lanes.space.bytes_free_at_end IS
    'bytes of free blocks at the end of the file, which VACUUM returns to the file system';

-- The segments of all lanes tables that the caller may read. The view reads indexes of parts, and runs that are not sealed.
-- It does not read segments themselves, so rows in object storage stay there.
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
    'the sealed segments, and the runs that are not sealed yet, of each lanes table that you may read';
COMMENT ON COLUMN lanes.segments.relation IS 'the table';
COMMENT ON COLUMN lanes.segments.state IS 'open: not sealed yet; sealed: in the table''s file; remote: in object storage';
COMMENT ON COLUMN lanes.segments.part IS 'the number of the part that the segment belongs to; each sealing makes a part';
COMMENT ON COLUMN lanes.segments.rows IS 'rows, including deleted ones';
COMMENT ON COLUMN lanes.segments.rows_live IS 'rows that are not deleted';
COMMENT ON COLUMN lanes.segments.rows_resident IS 'rows that are in the arena, decoded';
COMMENT ON COLUMN lanes.segments.bytes_raw IS 'bytes of the values, each stored by itself';
COMMENT ON COLUMN lanes.segments.bytes_encoded IS 'bytes in the file or in object storage';
COMMENT ON COLUMN lanes.segments.encodings IS 'the main encoding of each column';
COMMENT ON COLUMN lanes.segments.column_bytes IS 'bytes of each column';
COMMENT ON COLUMN lanes.segments.min_time IS 'the oldest time of the column that retain and hot use';
COMMENT ON COLUMN lanes.segments.max_time IS 'the newest time of that column';
COMMENT ON COLUMN lanes.segments.block IS 'the block of the table''s file at which the segment begins';
COMMENT ON COLUMN lanes.segments.object_key IS 'the key of the segment in object storage';
COMMENT ON COLUMN lanes.segments.in_cold_cache IS 'whether the cold cache on disk holds a copy of the remote segment';

-- Verifies a table. Its owner may call it, since it locks VACUUM and sealing out meanwhile.
CREATE FUNCTION lanes."check"(target regclass, indexes boolean DEFAULT true, remote boolean DEFAULT false)
    RETURNS TABLE (place text, problem text)
    VOLATILE PARALLEL RESTRICTED STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'check_table_wrapper';
COMMENT ON FUNCTION lanes."check"(regclass, boolean, boolean) IS
    'verifies a lanes table and its indexes, and returns what is wrong: no rows, if all is right';

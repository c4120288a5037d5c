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

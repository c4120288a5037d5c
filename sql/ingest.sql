-- Functions that insert rows from a batch in the wire format, or from the image of a sealed segment.

CREATE FUNCTION lanes.append(target regclass, batch bytea) RETURNS bigint
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'append_wrapper';
COMMENT ON FUNCTION lanes.append(regclass, bytea) IS
    'inserts one batch in the wire format (a columnar FlatBuffer) and returns the number of rows inserted';

CREATE FUNCTION lanes.append_placed(target regclass, batch bytea) RETURNS bigint[]
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'append_placed_wrapper';
COMMENT ON FUNCTION lanes.append_placed(regclass, bytea) IS
    'lanes.append into a plain logged lanes table; returns its storage id, then the first row and the number of rows of each run';

CREATE FUNCTION lanes.restore_segment(target regclass, image bytea) RETURNS bigint
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'restore_segment_wrapper';
COMMENT ON FUNCTION lanes.restore_segment(regclass, bytea) IS
    'for lanes-gateway restore: inserts the rows of the image of a sealed segment into a lanes table with the same columns';
REVOKE ALL ON FUNCTION lanes.restore_segment(regclass, bytea) FROM PUBLIC;

-- Sealing by hand.

CREATE FUNCTION lanes.seal(target regclass) RETURNS bigint
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'seal_table_wrapper';
COMMENT ON FUNCTION lanes.seal(regclass) IS
    'seals all rows of a lanes table that every snapshot sees, and merges its parts; how many rows were written';

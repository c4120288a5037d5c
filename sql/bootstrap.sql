-- The schema's privileges and the access method. The control file creates the schema.
GRANT USAGE ON SCHEMA lanes TO PUBLIC;

CREATE FUNCTION lanes.handler(internal) RETURNS table_am_handler
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'lanes_handler';

CREATE ACCESS METHOD lanes TYPE TABLE HANDLER lanes.handler;

COMMENT ON ACCESS METHOD lanes IS 'tables whose columns are SIMD lanes in shared memory';

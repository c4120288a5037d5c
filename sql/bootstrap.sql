-- What everything else stands in. The schema itself comes from the control file.
GRANT USAGE ON SCHEMA lanes TO PUBLIC;

CREATE FUNCTION lanes.handler(internal) RETURNS table_am_handler
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'lanes_handler';

CREATE ACCESS METHOD lanes TYPE TABLE HANDLER lanes.handler;

COMMENT ON ACCESS METHOD lanes IS 'columns as SIMD lanes in shared memory';

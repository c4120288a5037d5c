-- ASOF joins. The two markers stand in the ON of a join and are replaced before planning; they are never executed.
-- They are VOLATILE, so that nothing folds or moves a call before it is replaced. Their arguments are "any", because the
-- type of the times decides what a tolerance means.

CREATE FUNCTION lanes.asof(condition boolean, tolerance "any" DEFAULT NULL, tie "any" DEFAULT NULL) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_marker';

COMMENT ON FUNCTION lanes.asof(boolean, "any", "any") IS
    'in the ON of an INNER or LEFT JOIN: matches the one row of the right side that is the latest at, or the earliest from, the time of the left side';

CREATE FUNCTION lanes.asof_nearest(a "any", b "any", tolerance "any" DEFAULT NULL, tie "any" DEFAULT NULL) RETURNS boolean
    LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_marker';

COMMENT ON FUNCTION lanes.asof_nearest("any", "any", "any", "any") IS
    'in the ON of an INNER or LEFT JOIN: matches the one row of the right side that is nearest in time; of two equally near rows, the earlier';

-- Rewritten queries call this function: it returns the tolerance, or raises an error if it is negative or NULL.
CREATE FUNCTION lanes.asof_tolerance(interval) RETURNS interval
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_tolerance';
CREATE FUNCTION lanes.asof_tolerance(int4) RETURNS int4
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_tolerance';
CREATE FUNCTION lanes.asof_tolerance(int8) RETURNS int8
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_tolerance';
CREATE FUNCTION lanes.asof_tolerance(float8) RETURNS float8
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_tolerance';
CREATE FUNCTION lanes.asof_tolerance(numeric) RETURNS numeric
    LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_tolerance';

-- Rewritten queries call this function: it returns numbers that sort as the distances between two times do. It neither
-- overflows nor fails at infinity.
CREATE FUNCTION lanes.asof_distance(timestamptz, timestamptz) RETURNS int8
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_distance_timestamp';
CREATE FUNCTION lanes.asof_distance(timestamp, timestamp) RETURNS int8
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_distance_timestamp';
CREATE FUNCTION lanes.asof_distance(date, date) RETURNS int8
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_distance_date';
CREATE FUNCTION lanes.asof_distance(int8, int8) RETURNS int8
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_distance_integer';
CREATE FUNCTION lanes.asof_distance(float8, float8) RETURNS float8
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'lanes_asof_distance_float';
CREATE FUNCTION lanes.asof_distance(a numeric, b numeric) RETURNS numeric
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN CASE WHEN a = b THEN 0 ELSE abs(a - b) END;

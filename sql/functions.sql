-- Functions over times and values, for any table: time_bucket and xbar, first and last, vwap, ema, counters,
-- time_weight, histogram, candlestick, delta, rate.
--
-- With `lanes` in search_path, queries find them without the schema, as Grafana and SQL written for other time-series
-- databases call them. No other schema gets any object.

-- Buckets. Buckets in a time zone are STABLE: the server has the rules of a zone, and a setting has abbreviations.

CREATE FUNCTION lanes.time_bucket(width interval, ts timestamptz) RETURNS timestamptz
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.time_bucket(width interval, ts timestamptz, origin timestamptz) RETURNS timestamptz
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.time_bucket(width interval, ts timestamp) RETURNS timestamp
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.time_bucket(width interval, ts timestamp, origin timestamp) RETURNS timestamp
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.time_bucket(width interval, ts date) RETURNS date
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_date';
CREATE FUNCTION lanes.time_bucket(width interval, ts date, origin date) RETURNS date
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_date';
CREATE FUNCTION lanes.time_bucket(width bigint, ts bigint) RETURNS bigint
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_bigint';
CREATE FUNCTION lanes.time_bucket(width integer, ts integer) RETURNS integer
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_integer';
CREATE FUNCTION lanes.time_bucket(width interval, ts timestamptz, timezone text) RETURNS timestamptz
    STABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_zone';

-- xbar is kdb's name for time_bucket.

CREATE FUNCTION lanes.xbar(width interval, ts timestamptz) RETURNS timestamptz
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.xbar(width interval, ts timestamptz, origin timestamptz) RETURNS timestamptz
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.xbar(width interval, ts timestamp) RETURNS timestamp
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.xbar(width interval, ts timestamp, origin timestamp) RETURNS timestamp
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_timestamp';
CREATE FUNCTION lanes.xbar(width interval, ts date) RETURNS date
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_date';
CREATE FUNCTION lanes.xbar(width interval, ts date, origin date) RETURNS date
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_date';
CREATE FUNCTION lanes.xbar(width bigint, ts bigint) RETURNS bigint
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_bigint';
CREATE FUNCTION lanes.xbar(width integer, ts integer) RETURNS integer
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_integer';
CREATE FUNCTION lanes.xbar(width interval, ts timestamptz, timezone text) RETURNS timestamptz
    STABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_bucket_zone';

COMMENT ON FUNCTION lanes.time_bucket(interval, timestamptz) IS
    'the start of the bucket of this width that contains a time; days are those of UTC, weeks begin on Monday';
COMMENT ON FUNCTION lanes.time_bucket(interval, timestamptz, text) IS
    'the start of the bucket of this width that contains a time, on the wall clock of a time zone';

-- Buckets without gaps. The functions are replaced before a query is planned: see extension/src/gapfill_rewrite.
CREATE FUNCTION lanes.time_bucket_gapfill(width interval, ts timestamptz,
    start timestamptz DEFAULT NULL, finish timestamptz DEFAULT NULL)
    RETURNS timestamptz
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.time_bucket_gapfill(width interval, ts timestamp,
    start timestamp DEFAULT NULL, finish timestamp DEFAULT NULL)
    RETURNS timestamp
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.time_bucket_gapfill(width interval, ts date, start date DEFAULT NULL, finish date DEFAULT NULL)
    RETURNS date
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.time_bucket_gapfill(width bigint, ts bigint,
    start bigint DEFAULT NULL, finish bigint DEFAULT NULL)
    RETURNS bigint
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.time_bucket_gapfill(width integer, ts integer,
    start integer DEFAULT NULL, finish integer DEFAULT NULL)
    RETURNS integer
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.time_bucket_gapfill(
    width interval, ts timestamptz, timezone text, start timestamptz DEFAULT NULL, finish timestamptz DEFAULT NULL)
    RETURNS timestamptz VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.locf(value anyelement) RETURNS anyelement
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.locf(value anyelement, treat_null_as_missing boolean) RETURNS anyelement
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value smallint) RETURNS smallint
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value integer) RETURNS integer
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value bigint) RETURNS bigint
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value real) RETURNS real
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value float8) RETURNS float8
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.interpolate(value numeric) RETURNS numeric
    VOLATILE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';
CREATE FUNCTION lanes.gapfill(VARIADIC "any") RETURNS boolean
    IMMUTABLE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_gapfill_marker';

COMMENT ON FUNCTION lanes.time_bucket_gapfill(interval, timestamptz, timestamptz, timestamptz) IS
    'in GROUP BY: as time_bucket, with a row for each bucket from start to finish, also where there is no data';
COMMENT ON FUNCTION lanes.locf(anyelement) IS
    'beside time_bucket_gapfill: the value, and in rows without data the value of the row before';
COMMENT ON FUNCTION lanes.interpolate(float8) IS
    'beside time_bucket_gapfill: the value, and in rows without data one between those of the rows before and after';

-- first and last: the value at the smallest and at the largest time. People are not meant to call the functions that make
-- up an aggregate.
CREATE FUNCTION lanes.first_last_serialise(internal) RETURNS bytea
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_last_serialise';
CREATE FUNCTION lanes.first_last_deserialise(bytea, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_last_deserialise';
CREATE FUNCTION lanes.first_last_final(internal, anyelement, "any") RETURNS anyelement
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_last_final';

CREATE FUNCTION lanes.first_combine(internal, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_combine';
CREATE FUNCTION lanes.first_transition(internal, anyelement, timestamptz) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_64';
CREATE FUNCTION lanes.first_transition(internal, anyelement, timestamp) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_64';
CREATE FUNCTION lanes.first_transition(internal, anyelement, date) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_32';
CREATE FUNCTION lanes.first_transition(internal, anyelement, bigint) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_64';
CREATE FUNCTION lanes.first_transition(internal, anyelement, integer) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_32';
CREATE FUNCTION lanes.first_transition(internal, anyelement, float8) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_first_float8';

CREATE AGGREGATE lanes.first(value anyelement, ts timestamptz) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.first(value anyelement, ts timestamp) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.first(value anyelement, ts date) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.first(value anyelement, ts bigint) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.first(value anyelement, ts integer) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.first(value anyelement, ts float8) (
    sfunc = lanes.first_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.first_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);

CREATE FUNCTION lanes.last_combine(internal, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_combine';
CREATE FUNCTION lanes.last_transition(internal, anyelement, timestamptz) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_64';
CREATE FUNCTION lanes.last_transition(internal, anyelement, timestamp) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_64';
CREATE FUNCTION lanes.last_transition(internal, anyelement, date) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_32';
CREATE FUNCTION lanes.last_transition(internal, anyelement, bigint) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_64';
CREATE FUNCTION lanes.last_transition(internal, anyelement, integer) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_32';
CREATE FUNCTION lanes.last_transition(internal, anyelement, float8) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_last_float8';

CREATE AGGREGATE lanes.last(value anyelement, ts timestamptz) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.last(value anyelement, ts timestamp) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.last(value anyelement, ts date) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.last(value anyelement, ts bigint) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.last(value anyelement, ts integer) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);
CREATE AGGREGATE lanes.last(value anyelement, ts float8) (
    sfunc = lanes.last_transition, stype = internal, finalfunc = lanes.first_last_final, finalfunc_extra,
    combinefunc = lanes.last_combine, serialfunc = lanes.first_last_serialise,
    deserialfunc = lanes.first_last_deserialise, parallel = safe);

-- Volume-weighted average price. The state holds the number of rows, the sum of products, and the sum of volumes.
CREATE FUNCTION lanes.vwap_transition(float8[], price float8, volume float8) RETURNS float8[]
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_vwap_transition';
CREATE FUNCTION lanes.vwap_combine(float8[], float8[]) RETURNS float8[]
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_vwap_combine';
CREATE FUNCTION lanes.vwap_final(float8[]) RETURNS float8
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_vwap_final';
CREATE AGGREGATE lanes.vwap(price float8, volume float8) (
    sfunc = lanes.vwap_transition, stype = float8[], initcond = '{0,0,0}', finalfunc = lanes.vwap_final,
    combinefunc = lanes.vwap_combine, parallel = safe);

-- Exponential moving average. It depends on the order of rows, so partial averages cannot be combined.
CREATE FUNCTION lanes.ema_transition(internal, x float8, alpha float8) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_ema_transition_alpha';
CREATE FUNCTION lanes.ema_transition(internal, x float8, span integer) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_ema_transition_span';
CREATE FUNCTION lanes.ema_final(internal) RETURNS float8
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_ema_final';
CREATE AGGREGATE lanes.ema(x float8, alpha float8) (
    sfunc = lanes.ema_transition, stype = internal, finalfunc = lanes.ema_final, parallel = restricted);
CREATE AGGREGATE lanes.ema(x float8, span integer) (
    sfunc = lanes.ema_transition, stype = internal, finalfunc = lanes.ema_final, parallel = restricted);

-- Counters and time-weighted averages. They need the rows of a group in the order of time, so partial results cannot be
-- combined.
CREATE FUNCTION lanes.counter_transition(internal, value float8, ts timestamptz) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_counter_transition';
CREATE FUNCTION lanes.counter_transition(internal, value float8, ts timestamp) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_counter_transition';
CREATE FUNCTION lanes.counter_increase_final(internal) RETURNS float8
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_counter_increase';
CREATE FUNCTION lanes.counter_rate_final(internal) RETURNS float8
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_counter_rate';
CREATE AGGREGATE lanes.counter_increase(value float8, ts timestamptz) (
    sfunc = lanes.counter_transition, stype = internal, finalfunc = lanes.counter_increase_final, parallel = safe);
CREATE AGGREGATE lanes.counter_increase(value float8, ts timestamp) (
    sfunc = lanes.counter_transition, stype = internal, finalfunc = lanes.counter_increase_final, parallel = safe);
CREATE AGGREGATE lanes.counter_rate(value float8, ts timestamptz) (
    sfunc = lanes.counter_transition, stype = internal, finalfunc = lanes.counter_rate_final, parallel = safe);
CREATE AGGREGATE lanes.counter_rate(value float8, ts timestamp) (
    sfunc = lanes.counter_transition, stype = internal, finalfunc = lanes.counter_rate_final, parallel = safe);

CREATE FUNCTION lanes.time_weight_transition(internal, value float8, ts timestamptz) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_weight_transition';
CREATE FUNCTION lanes.time_weight_transition(internal, value float8, ts timestamp) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_weight_transition';
CREATE FUNCTION lanes.time_weight_transition(internal, value float8, ts timestamptz, method text) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_weight_transition';
CREATE FUNCTION lanes.time_weight_transition(internal, value float8, ts timestamp, method text) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_weight_transition';
CREATE FUNCTION lanes.time_weight_final(internal) RETURNS float8
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_time_weight_final';
CREATE AGGREGATE lanes.time_weight(value float8, ts timestamptz) (
    sfunc = lanes.time_weight_transition, stype = internal, finalfunc = lanes.time_weight_final, parallel = safe);
CREATE AGGREGATE lanes.time_weight(value float8, ts timestamp) (
    sfunc = lanes.time_weight_transition, stype = internal, finalfunc = lanes.time_weight_final, parallel = safe);
CREATE AGGREGATE lanes.time_weight(value float8, ts timestamptz, method text) (
    sfunc = lanes.time_weight_transition, stype = internal, finalfunc = lanes.time_weight_final, parallel = safe);
CREATE AGGREGATE lanes.time_weight(value float8, ts timestamp, method text) (
    sfunc = lanes.time_weight_transition, stype = internal, finalfunc = lanes.time_weight_final, parallel = safe);

-- Histograms. People are not meant to call the functions that make up an aggregate.
CREATE FUNCTION lanes.histogram_transition(internal, value float8, min float8, max float8, buckets integer)
    RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_histogram_transition';
CREATE FUNCTION lanes.histogram_combine(internal, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_histogram_combine';
CREATE FUNCTION lanes.histogram_serialise(internal) RETURNS bytea
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_histogram_serialise';
CREATE FUNCTION lanes.histogram_deserialise(bytea, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_histogram_deserialise';
CREATE FUNCTION lanes.histogram_final(internal) RETURNS integer[]
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_histogram_final';
CREATE AGGREGATE lanes.histogram(value float8, min float8, max float8, buckets integer) (
    sfunc = lanes.histogram_transition, stype = internal, finalfunc = lanes.histogram_final,
    combinefunc = lanes.histogram_combine, serialfunc = lanes.histogram_serialise,
    deserialfunc = lanes.histogram_deserialise, parallel = safe);

-- Candlesticks.
CREATE TYPE lanes.candle AS (
    open float8, high float8, low float8, close float8, volume float8, vwap float8,
    open_time timestamptz, high_time timestamptz, low_time timestamptz, close_time timestamptz);
CREATE FUNCTION lanes.candlestick_transition(internal, ts timestamptz, price float8, volume float8) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_candlestick_transition';
CREATE FUNCTION lanes.candlestick_combine(internal, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_candlestick_combine';
CREATE FUNCTION lanes.candlestick_serialise(internal) RETURNS bytea
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_candlestick_serialise';
CREATE FUNCTION lanes.candlestick_deserialise(bytea, internal) RETURNS internal
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_candlestick_deserialise';
CREATE FUNCTION lanes.candlestick_final(internal) RETURNS lanes.candle
    IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_candlestick_final';
CREATE AGGREGATE lanes.candlestick(ts timestamptz, price float8, volume float8) (
    sfunc = lanes.candlestick_transition, stype = internal, finalfunc = lanes.candlestick_final,
    combinefunc = lanes.candlestick_combine, serialfunc = lanes.candlestick_serialise,
    deserialfunc = lanes.candlestick_deserialise, parallel = safe);

-- delta and rate: the change since the previous row.
CREATE FUNCTION lanes.delta(x float8) RETURNS float8
    WINDOW IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_delta_float8';
CREATE FUNCTION lanes.delta(x bigint) RETURNS bigint
    WINDOW IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_delta_bigint';
CREATE FUNCTION lanes.delta(x integer) RETURNS integer
    WINDOW IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_delta_integer';
CREATE FUNCTION lanes.rate(x float8, ts timestamptz) RETURNS float8
    WINDOW IMMUTABLE PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'lanes_rate';

COMMENT ON AGGREGATE lanes.vwap(float8, float8) IS 'sum(price * volume) / sum(volume) of the rows where neither is NULL';
COMMENT ON AGGREGATE lanes.ema(float8, float8) IS 'exponential moving average with the weight alpha, in the order of rows';
COMMENT ON AGGREGATE lanes.ema(float8, integer) IS 'exponential moving average with alpha = 2 / (span + 1), in the order of rows';
COMMENT ON AGGREGATE lanes.counter_increase(float8, timestamptz) IS
    'the sum of the increases of a counter, in the order of time; a value below the one before it counts from zero';
COMMENT ON AGGREGATE lanes.counter_rate(float8, timestamptz) IS
    'the increase of a counter per second, from the first to the last row';
COMMENT ON AGGREGATE lanes.time_weight(float8, timestamptz) IS
    'the average over time of a value that holds until the next one';
COMMENT ON AGGREGATE lanes.time_weight(float8, timestamptz, text) IS
    'the average over time of a value that holds until the next one (locf), or moves to it on a line (linear)';
COMMENT ON AGGREGATE lanes.histogram(float8, float8, float8, integer) IS
    'how many values are below min, in each of the buckets, and at or above max';
COMMENT ON AGGREGATE lanes.candlestick(timestamptz, float8, float8) IS
    'open, high, low and close of a price, its volume and its volume-weighted average';
COMMENT ON FUNCTION lanes.rate(float8, timestamptz) IS 'the increase of a counter per second since the previous row';

-- PromQL: the query language of Prometheus, over lanes.samples and lanes.series_runs.
--
-- The functions read as the caller: privileges, row-level security and the snapshot of the calling query apply. So a
-- query can join an answer with any other table.
CREATE FUNCTION lanes.promql(query text, at timestamptz DEFAULT now(), lookback interval DEFAULT '5 minutes')
    RETURNS TABLE (labels jsonb, ts timestamptz, value float8)
    STABLE STRICT ROWS 100 COST 10000 LANGUAGE c AS 'MODULE_PATHNAME', 'promql_wrapper';
COMMENT ON FUNCTION lanes.promql(text, timestamptz, interval) IS
    'evaluates a PromQL query at one time, as Prometheus does; lookback is the age up to which a sample counts';

CREATE FUNCTION lanes.promql_range(
    query text, start timestamptz, stop timestamptz, step interval, lookback interval DEFAULT '5 minutes'
) RETURNS TABLE (labels jsonb, ts timestamptz, value float8)
    STABLE STRICT ROWS 10000 COST 10000 LANGUAGE c AS 'MODULE_PATHNAME', 'promql_range_wrapper';
COMMENT ON FUNCTION lanes.promql_range(text, timestamptz, timestamptz, interval, interval) IS
    'evaluates a PromQL query at each step from start to stop, both included, as Prometheus does';

CREATE FUNCTION lanes.promql_api(
    query text, start timestamptz, stop timestamptz, step interval, lookback interval, series_limit int4, stats boolean
) RETURNS SETOF text
    STABLE ROWS 10 COST 10000 LANGUAGE c AS 'MODULE_PATHNAME', 'promql_api_wrapper';
COMMENT ON FUNCTION lanes.promql_api(text, timestamptz, timestamptz, interval, interval, int4, boolean) IS
    'for lanes-gateway: the answer to a PromQL query as the body of Prometheus''s HTTP API, in pieces; without a step, at start only';

CREATE FUNCTION lanes.promql_explain(
    query text, start timestamptz DEFAULT now(), stop timestamptz DEFAULT NULL, step interval DEFAULT NULL,
    lookback interval DEFAULT '5 minutes'
) RETURNS SETOF text
    STABLE ROWS 10 COST 10000 LANGUAGE c AS 'MODULE_PATHNAME', 'promql_explain_wrapper';
COMMENT ON FUNCTION lanes.promql_explain(text, timestamptz, timestamptz, interval, interval) IS
    'evaluates a PromQL query at start, or at each step from start to stop, and returns its plan with what each part of it read and how long it took';

REVOKE ALL ON FUNCTION lanes.promql(text, timestamptz, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.promql_range(text, timestamptz, timestamptz, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.promql_api(text, timestamptz, timestamptz, interval, interval, int4, boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.promql_explain(text, timestamptz, timestamptz, interval, interval) FROM PUBLIC;

-- The label index: the labels of Prometheus series, and the series of each label.
--
--   lanes.label_runs     runs of the index: each covers the series of a range of ids, and never changes
--   lanes.label_blocks   the blocks of the runs: values of a label, each with the ids of its series, packed
--   lanes.series_hashes  hashes of all series up to an id; a gateway that starts reads them instead of the label sets
--
-- All three are derived from lanes.series_runs. The sealer adds to them and merges them. TRUNCATE of the first two
-- together, or of the third, is always allowed, because the sealer builds them again. They are not dumped: the sealer
-- builds them again after a restore too.
CREATE TABLE lanes.label_runs (
    run       int8  PRIMARY KEY,
    first_id  int4  NOT NULL UNIQUE,
    last_id   int4  NOT NULL,
    series    int4  NOT NULL CHECK (series BETWEEN 0 AND last_id - first_id + 1),
    directory bytea NOT NULL
);

CREATE TABLE lanes.label_blocks (
    run   int8,
    block int4,
    terms bytea NOT NULL,
    PRIMARY KEY (run, block)
);

-- A row has the series of whole rows of lanes.series_runs, and only the last row is rewritten. Only gateways may read the
-- seed of the hashes: a sender that knows it can send series whose hashes are equal.
CREATE TABLE lanes.series_hashes (
    last_id int4  PRIMARY KEY,
    seed    int8  NOT NULL,
    hashes  bytea NOT NULL
);

-- These values are compressed already, or are read in part.
ALTER TABLE lanes.label_runs   ALTER COLUMN directory SET STORAGE EXTERNAL;
ALTER TABLE lanes.label_blocks ALTER COLUMN terms     SET STORAGE EXTERNAL;
ALTER TABLE lanes.series_hashes ALTER COLUMN hashes   SET STORAGE EXTERNAL;

-- A run's number is never used twice, because sessions cache the directory of a run under it.
CREATE SEQUENCE lanes.label_run_numbers;

COMMENT ON TABLE lanes.label_runs   IS 'the label index: one row per run; derived from lanes.series_runs';
COMMENT ON TABLE lanes.label_blocks IS 'the label index: the blocks of lanes.label_runs';
COMMENT ON TABLE lanes.series_hashes IS
    'hashes of all series up to the greatest last_id, for gateways that start; derived from lanes.series_runs';

-- Empties the index. Triggers call it when series are inserted between indexed ones, changed or deleted. The lock waits
-- for an indexing in progress, which may have seen the series before the change. TRUNCATE is used because a DELETE with an
-- older snapshot would leave newer runs.
CREATE FUNCTION lanes.forget_label_index() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    LOCK TABLE lanes.label_runs IN SHARE ROW EXCLUSIVE MODE;
    TRUNCATE lanes.label_runs, lanes.label_blocks, lanes.series_hashes;
END
$$;

CREATE FUNCTION lanes.follow_changed_series() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM lanes.forget_label_index();
    RETURN NULL;
END
$$;

CREATE TRIGGER follow_changed_series AFTER UPDATE OR DELETE OR TRUNCATE ON lanes.series_runs
    FOR EACH STATEMENT EXECUTE FUNCTION lanes.follow_changed_series();

CREATE FUNCTION lanes.index_labels() RETURNS int8
    VOLATILE LANGUAGE c SET search_path = pg_catalog, pg_temp AS 'MODULE_PATHNAME', 'index_labels_wrapper';
COMMENT ON FUNCTION lanes.index_labels() IS
    'indexes the labels of series that are not indexed yet, as the sealer does; returns their number';

-- Series have samples between two times, both included, as far as this is known without fetching anything from object
-- storage: a segment there that has such times counts for all series between its first and its last one.
CREATE FUNCTION lanes.series_ids(
    selector text, "from" timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity'
) RETURNS SETOF int4
    STABLE PARALLEL SAFE STRICT ROWS 100 LANGUAGE c AS 'MODULE_PATHNAME', 'series_ids_wrapper';
COMMENT ON FUNCTION lanes.series_ids(text, timestamptz, timestamptz) IS
    'the ids of the series that a selector such as up{job="node",instance=~"a|b"} matches and that have samples '
    'between two times';

CREATE FUNCTION lanes.label_names(
    selector text DEFAULT NULL, "from" timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity'
) RETURNS SETOF text
    STABLE PARALLEL SAFE ROWS 50 LANGUAGE c AS 'MODULE_PATHNAME', 'label_names_wrapper';
COMMENT ON FUNCTION lanes.label_names(text, timestamptz, timestamptz) IS
    'the names of the labels of all series, or of the series that a selector matches, that have samples '
    'between two times';

CREATE FUNCTION lanes.label_values(
    name text, selector text DEFAULT NULL, "from" timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity'
) RETURNS SETOF text
    STABLE PARALLEL SAFE ROWS 1000 LANGUAGE c AS 'MODULE_PATHNAME', 'label_values_wrapper';
COMMENT ON FUNCTION lanes.label_values(text, text, timestamptz, timestamptz) IS
    'the values of a label of all series, or of the series that a selector matches, that have samples '
    'between two times';

CREATE FUNCTION lanes.cardinality(by text DEFAULT 'metric', top int4 DEFAULT 10)
    RETURNS TABLE (item text, series int8, "values" int8)
    STABLE PARALLEL SAFE STRICT ROWS 10 LANGUAGE c AS 'MODULE_PATHNAME', 'cardinality_wrapper';
COMMENT ON FUNCTION lanes.cardinality(text, int4) IS
    'the metrics, label names (with their distinct values) or label values that most series have; by is ''metric'', ''name'' or ''value''';

CREATE FUNCTION lanes.selects_without_labels(selector text) RETURNS boolean
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'selects_without_labels_wrapper';
COMMENT ON FUNCTION lanes.selects_without_labels(text) IS
    'whether all matchers of a selector match the empty text, so that it matches a series without labels too';

-- Deletes samples as Prometheus does: both ends are included, the series stay registered, and at least one matcher must
-- not match the empty text.
CREATE FUNCTION lanes.delete_series(
    selector text, "from" timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity'
) RETURNS int8
LANGUAGE plpgsql STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deleted int8;
BEGIN
    IF lanes.selects_without_labels(selector) THEN
        RAISE EXCEPTION 'all matchers of the selector match the empty text' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Use at least one matcher that does not match the empty text, as in up{job="node"}. TRUNCATE lanes.samples deletes all samples.';
    END IF;
    DELETE FROM lanes.samples AS s
     WHERE s.series = ANY (ARRAY (SELECT lanes.series_ids(selector))) AND s.ts >= "from" AND s.ts <= until;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;

COMMENT ON FUNCTION lanes.delete_series(text, timestamptz, timestamptz) IS
    'deletes the samples of the series that a selector matches, both ends included; returns their number';

REVOKE ALL ON FUNCTION lanes.forget_label_index() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.follow_changed_series() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.index_labels() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.series_ids(text, timestamptz, timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.label_names(text, timestamptz, timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.label_values(text, text, timestamptz, timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.cardinality(text, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.selects_without_labels(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.delete_series(text, timestamptz, timestamptz) FROM PUBLIC;

-- Columns for labels in the views of metrics, after ts, value, series and labels. Indexing finds the labels of a metric.
-- The sealer then changes the views, each in its own transaction, which waits for the lock for a moment only. So readers of
-- a view and ingest do not block each other.
CREATE TABLE lanes.metric_labels (
    metric  text,
    name    text,
    -- Whether the view cannot have a column for the label: see lanes.extend_metric_view().
    left_out boolean NOT NULL DEFAULT false,
    PRIMARY KEY (metric, name)
);

COMMENT ON TABLE lanes.metric_labels IS
    'the labels of the series of each metric, and whether its view leaves a label out';

-- The metrics whose views lack a column for a label.
CREATE VIEW lanes.metrics_to_extend WITH (security_invoker = true) AS
SELECT DISTINCT m.metric
  FROM lanes.metrics AS m
  JOIN lanes.metric_labels AS l ON l.metric = m.metric AND NOT l.left_out
  JOIN pg_catalog.pg_class AS c
    ON c.relname = m.view_name AND c.relnamespace = 'metrics'::pg_catalog.regnamespace AND c.relkind = 'v'
 WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = l.name::pg_catalog.name
 );

-- Adds columns to a view: one for each label, in the order in which the labels were found, up to 60. A label stays in
-- `labels` only if its name is longer than an identifier may be, if its name is that of another column, or if somebody has
-- replaced the view.
CREATE FUNCTION lanes.extend_metric_view(metric text) RETURNS int4
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    columns_max CONSTANT int4 := 60;
    shown   name;
    found   name[];
    added   text[];
    columns text;
BEGIN
    SELECT m.view_name INTO shown FROM lanes.metrics m WHERE m.metric = extend_metric_view.metric FOR UPDATE;
    SELECT array_agg(a.attname ORDER BY a.attnum) INTO found
      FROM pg_attribute a
     WHERE a.attrelid = (
        SELECT c.oid FROM pg_class c
         WHERE c.relname = shown AND c.relnamespace = 'metrics'::regnamespace AND c.relkind = 'v'
     );
    IF found IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE lanes.metric_labels l SET left_out = true
     WHERE l.metric = extend_metric_view.metric AND NOT l.left_out
       AND (octet_length(l.name) > 63 OR l.name IN ('ts', 'value', 'series', 'labels')
            OR found[1:4] <> '{ts,value,series,labels}'::name[]
            OR position('lanes.metric_series' IN pg_get_viewdef(format('metrics.%I', shown)::regclass)) = 0);
    SELECT array_agg(n.name ORDER BY n.name) INTO added
      FROM (SELECT l.name FROM lanes.metric_labels l
             WHERE l.metric = extend_metric_view.metric AND NOT l.left_out AND l.name <> ALL (found::text[])
             ORDER BY l.name LIMIT greatest(columns_max - cardinality(found) + 4, 0)) AS n;
    IF added IS NOT NULL THEN
        SELECT string_agg(format(', r.labels->>%L AS %I', n.name, n.name), '' ORDER BY n.place) INTO columns
          FROM unnest(found[5:]::text[] || added) WITH ORDINALITY AS n (name, place);
        EXECUTE format(
            'CREATE OR REPLACE VIEW metrics.%I WITH (security_invoker = true) AS '
            'SELECT s.ts, s.value, s.series, r.labels%s '
            'FROM lanes.samples AS s JOIN lanes.metric_series(%L) AS r ON r.id = s.series '
            'WHERE NOT lanes.is_stale_marker(s.value)',
            shown, columns, metric);
    END IF;
    IF cardinality(found) - 4 + coalesce(cardinality(added), 0) >= columns_max THEN
        UPDATE lanes.metric_labels l SET left_out = true
         WHERE l.metric = extend_metric_view.metric AND NOT l.left_out
           AND l.name <> ALL (found::text[] || coalesce(added, '{}'));
    END IF;
    RETURN coalesce(cardinality(added), 0);
END
$$;

COMMENT ON FUNCTION lanes.extend_metric_view(text) IS
    'adds a column to the view of a metric for each label that has none; returns the number of columns added';

REVOKE ALL ON FUNCTION lanes.extend_metric_view(text) FROM PUBLIC;

-- The label index: which series of Prometheus have which labels.
--
--   lanes.label_runs     runs of the index: each covers the series of a range of ids, and never changes
--   lanes.label_blocks   their blocks: values of a label, each with the ids of its series, packed
--
-- Both are derived from lanes.series_runs. The sealer adds runs and merges them; TRUNCATE of both is always allowed, and the index is
-- built again. They are not dumped: after a restore they are built again too.
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

-- Compressed already, or read in part.
ALTER TABLE lanes.label_runs   ALTER COLUMN directory SET STORAGE EXTERNAL;
ALTER TABLE lanes.label_blocks ALTER COLUMN terms     SET STORAGE EXTERNAL;

-- A number is never used twice: sessions remember directories by it.
CREATE SEQUENCE lanes.label_run_numbers;

COMMENT ON TABLE lanes.label_runs   IS 'the label index: one row a run; derived from lanes.series_runs';
COMMENT ON TABLE lanes.label_blocks IS 'the label index: blocks of lanes.label_runs';

-- Whoever inserts series between those that are indexed, changes or deletes some, empties the index. The lock waits for an indexing that
-- runs, which may have seen the series as they were. TRUNCATE, as a DELETE of an older snapshot would leave newer runs.
CREATE FUNCTION lanes.forget_label_index() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    LOCK TABLE lanes.label_runs IN SHARE ROW EXCLUSIVE MODE;
    TRUNCATE lanes.label_runs, lanes.label_blocks;
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
COMMENT ON FUNCTION lanes.index_labels() IS 'indexes the labels of series that are not indexed yet, as the sealer does: how many they were';

CREATE FUNCTION lanes.series_ids(selector text) RETURNS SETOF int4
    STABLE PARALLEL SAFE STRICT ROWS 100 LANGUAGE c AS 'MODULE_PATHNAME', 'series_ids_wrapper';
COMMENT ON FUNCTION lanes.series_ids(text) IS 'ids of the series that a selector selects, such as up{job="node",instance=~"a|b"}';

CREATE FUNCTION lanes.label_names(selector text DEFAULT NULL) RETURNS SETOF text
    STABLE PARALLEL SAFE ROWS 50 LANGUAGE c AS 'MODULE_PATHNAME', 'label_names_wrapper';
COMMENT ON FUNCTION lanes.label_names(text) IS 'names of the labels that series have; of those that a selector selects, if there is one';

CREATE FUNCTION lanes.label_values(name text, selector text DEFAULT NULL) RETURNS SETOF text
    STABLE PARALLEL SAFE ROWS 1000 LANGUAGE c AS 'MODULE_PATHNAME', 'label_values_wrapper';
COMMENT ON FUNCTION lanes.label_values(text, text) IS 'values of a label; of the series that a selector selects, if there is one';

CREATE FUNCTION lanes.cardinality(by text DEFAULT 'metric', top int4 DEFAULT 10)
    RETURNS TABLE (item text, series int8, "values" int8)
    STABLE PARALLEL SAFE STRICT ROWS 10 LANGUAGE c AS 'MODULE_PATHNAME', 'cardinality_wrapper';
COMMENT ON FUNCTION lanes.cardinality(text, int4) IS
    'what most series have: by ''metric'', by ''name'' of a label (and its distinct values), or by ''value'' of a label';

-- As Prometheus does it: both ends are included, the series stay registered, and a selector has to select.
CREATE FUNCTION lanes.delete_series(selector text, "from" timestamptz DEFAULT '-infinity', until timestamptz DEFAULT 'infinity')
RETURNS int8
LANGUAGE plpgsql STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    deleted int8;
BEGIN
    IF selector ~ '^\s*\{\s*\}\s*$' THEN
        RAISE EXCEPTION 'the selector selects every series' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'TRUNCATE lanes.samples deletes all samples.';
    END IF;
    DELETE FROM lanes.samples AS s
     WHERE s.series = ANY (ARRAY (SELECT lanes.series_ids(selector))) AND s.ts >= "from" AND s.ts <= until;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;

COMMENT ON FUNCTION lanes.delete_series(text, timestamptz, timestamptz) IS
    'deletes samples of the series that a selector selects, both ends included: how many they were';

REVOKE ALL ON FUNCTION lanes.forget_label_index() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.follow_changed_series() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.index_labels() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.series_ids(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.label_names(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.label_values(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.cardinality(text, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.delete_series(text, timestamptz, timestamptz) FROM PUBLIC;

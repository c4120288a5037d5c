-- Prometheus data in PostgreSQL: a few wide tables, and one view per metric.
--
--   lanes.samples           every sample of every series; a lanes table
--   lanes.series_runs       registered label sets, packed: one row for series of one metric with consecutive ids
--   lanes.series            a view with one row per series; ids are dense int4 numbers
--   lanes.metrics           one row per metric: its name, and the view that shows it
--   lanes.registry          one row: the next series id, and the lock of registration
--   lanes.requests          digests of the write requests applied lately, for exactly-once writes
--   metrics."<metric>"      views with (ts, value, series, labels) of one metric
--
-- Privileges: nothing here is granted to PUBLIC. `SELECT lanes.grant_gateway('role')` grants what a gateway needs, and
-- `SELECT lanes.grant_reader('role')` lets a role read. Registration runs as the owner of the extension, because it creates
-- views. Appending runs as the caller, so that the caller's INSERT privilege on the target decides.

CREATE TABLE lanes.samples (
    ts     timestamptz NOT NULL,
    series int4        NOT NULL,
    value  float8      NOT NULL
) USING lanes WITH (order_by = 'series, ts');

COMMENT ON TABLE lanes.samples IS
    'Prometheus samples as they were sent: in any order, with stale markers and NaN payloads kept to the bit';

-- A dump does not contain definitions of the extension's own tables. So the parameters that people set on lanes.samples are
-- stored in this table, whose rows a dump contains: ALTER TABLE writes all parameters here, and a trigger sets those that a
-- restored dump inserts. The table is empty until then, because rows of a dump must not meet others.
CREATE TABLE lanes.samples_parameters (
    name  text PRIMARY KEY,
    value text NOT NULL
);

COMMENT ON TABLE lanes.samples_parameters IS
    'storage parameters of lanes.samples, for pg_dump; change them by ALTER TABLE lanes.samples';

-- Each ALTER TABLE that sets or resets parameters of lanes.samples calls this function, as the role that alters.
CREATE FUNCTION lanes.keep_samples_parameters() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parameters CONSTANT text[] := (SELECT c.reloptions FROM pg_class c WHERE c.oid = 'lanes.samples'::regclass);
BEGIN
    DELETE FROM lanes.samples_parameters p
     WHERE NOT EXISTS (SELECT FROM pg_options_to_table(parameters) o
                        WHERE (o.option_name, o.option_value) = (p.name, p.value));
    INSERT INTO lanes.samples_parameters (name, value)
    SELECT o.option_name, o.option_value FROM pg_options_to_table(parameters) o ON CONFLICT DO NOTHING;
END
$$;

CREATE FUNCTION lanes.set_samples_parameters() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    wanted text;
    others text;
BEGIN
    SELECT string_agg(format('%I = %L', p.name, p.value), ', ')
               FILTER (WHERE p.value IS DISTINCT FROM o.option_value AND p.value IS NOT NULL),
           string_agg(format('%I', o.option_name), ', ') FILTER (WHERE p.name IS NULL)
      INTO wanted, others
      FROM lanes.samples_parameters p
      FULL JOIN (SELECT t.option_name, t.option_value
                   FROM pg_class c, pg_options_to_table(c.reloptions) t
                  WHERE c.oid = 'lanes.samples'::regclass) AS o ON o.option_name = p.name;
    IF wanted IS NOT NULL THEN
        EXECUTE 'ALTER TABLE lanes.samples SET (' || wanted || ')';
    END IF;
    -- An empty table means nothing: a dump of a database in which nobody has set a parameter has no rows.
    IF others IS NOT NULL AND EXISTS (SELECT FROM lanes.samples_parameters) THEN
        EXECUTE 'ALTER TABLE lanes.samples RESET (' || others || ')';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER set_samples_parameters AFTER INSERT ON lanes.samples_parameters
    FOR EACH STATEMENT EXECUTE FUNCTION lanes.set_samples_parameters();
-- The trigger must fire even where a restore disables triggers.
ALTER TABLE lanes.samples_parameters ENABLE ALWAYS TRIGGER set_samples_parameters;

REVOKE ALL ON FUNCTION lanes.set_samples_parameters() FROM PUBLIC;
-- The function only stores what is set. Default privileges may have revoked it from PUBLIC.
GRANT EXECUTE ON FUNCTION lanes.keep_samples_parameters() TO PUBLIC;

-- Functions that pack and unpack label sets.
CREATE FUNCTION lanes.pack_label_sets(label_sets text[]) RETURNS bytea
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'pack_label_sets_wrapper';
COMMENT ON FUNCTION lanes.pack_label_sets(text[]) IS 'packs label sets as lanes.series_runs stores them';

CREATE FUNCTION lanes.label_sets(packed bytea) RETURNS text[]
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'label_sets_wrapper';
COMMENT ON FUNCTION lanes.label_sets(bytea) IS 'unpacks the label sets of a row of lanes.series_runs, in the order of their ids';

-- The log of registration. A row has the series of one metric that one call registered: one row, two index entries and one
-- compressed value for many series. One row per series, with its indexes, would cost more than all the rest of ingest.
-- Gateways find label sets in memory, where they have all that are registered; the lock of lanes.registry makes them read
-- the newest. Queries find series in the label index (labels.sql), which is built afterwards.
--
-- Canonical labels are the JSON object of the labels without __name__: keys are distinct and sorted by their bytes, there are
-- no empty values and no white space, and escapes occur only where JSON requires them and as short as it allows. So two
-- series are the same if metric and labels are equal as text.
CREATE TABLE lanes.series_runs (
    first_id      int4        PRIMARY KEY CHECK (first_id > 0),
    last_id       int4        NOT NULL,
    metric        text        NOT NULL,
    labels        bytea       NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    CHECK (last_id >= first_id AND last_id - first_id = pg_catalog.cardinality(lanes.label_sets(labels)) - 1)
);

-- The labels are compressed already.
ALTER TABLE lanes.series_runs ALTER COLUMN labels SET STORAGE EXTERNAL;

CREATE INDEX series_runs_metric ON lanes.series_runs (metric);

COMMENT ON TABLE  lanes.series_runs IS 'Prometheus series as they were registered; read them in lanes.series';
COMMENT ON COLUMN lanes.series_runs.labels IS
    'the canonical labels of series first_id to last_id; lanes.label_sets() unpacks them to JSON texts; two series are the same if metric and text are equal';

CREATE TYPE lanes.series_run AS (metric text, labels text[]);

CREATE VIEW lanes.series WITH (security_invoker = true) AS
SELECT (r.first_id + u.place - 1)::int4 AS id, r.metric, u.labels::jsonb AS labels, r.registered_at
  FROM lanes.series_runs AS r
 CROSS JOIN LATERAL pg_catalog.unnest(lanes.label_sets(r.labels)) WITH ORDINALITY AS u (labels, place);

COMMENT ON VIEW   lanes.series IS 'Prometheus series: one row per label set';
COMMENT ON COLUMN lanes.series.labels IS 'the labels without __name__, which is the column metric';

-- Tells the planner how many series a metric has.
CREATE FUNCTION lanes.metric_series_support(internal) RETURNS internal
    STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'metric_series_support_wrapper';

COMMENT ON FUNCTION lanes.metric_series_support(internal) IS
    'for the planner: how many rows lanes.metric_series() returns';

-- Returns the series of one metric, for its view. The planner hook puts the query's conditions on labels into `conditions`.
CREATE FUNCTION lanes.metric_series(metric text, conditions text[] DEFAULT NULL) RETURNS TABLE (id int4, labels jsonb)
    STABLE PARALLEL SAFE ROWS 190 SUPPORT lanes.metric_series_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'metric_series_wrapper';

COMMENT ON FUNCTION lanes.metric_series(text, text[]) IS
    'the ids and labels of the series of a metric; the planner fills the conditions';

CREATE TABLE lanes.metrics (
    metric    text PRIMARY KEY,
    view_name name NOT NULL UNIQUE
);

COMMENT ON TABLE lanes.metrics IS
    'the view in schema metrics that shows each metric; a name longer than 63 bytes is cut and ends in a hash';

-- A table of one row. The lock of the row serialises registration, so gateways agree on ids. Its counter is transactional, so
-- ids have no gaps. `epoch` changes when the extension is created anew, so that gateways discard the ids that they cached.
CREATE TABLE lanes.registry (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    next_id  int4    NOT NULL,
    epoch    uuid    NOT NULL DEFAULT pg_catalog.gen_random_uuid()
);

INSERT INTO lanes.registry (next_id) VALUES (1);

CREATE TABLE lanes.requests (
    digest      bytea       PRIMARY KEY CHECK (pg_catalog.octet_length(digest) BETWEEN 8 AND 64),
    received_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    -- Where the rows of the request are stored, if object storage keeps a log of them: the number of rows before them in
    -- their batch, their number, and the result of lanes.append_placed.
    placed      int8[],
    -- A digest of the body, if `digest` is that of a key that the sender chose.
    body        bytea       CHECK (pg_catalog.octet_length(body) BETWEEN 8 AND 64)
);

-- Rows arrive and leave in the order of time, so a BRIN index serves the purge and costs ingest nothing.
CREATE INDEX requests_received_at ON lanes.requests USING brin (received_at) WITH (pages_per_range = 16, autosummarize = on);

COMMENT ON TABLE lanes.requests IS
    'digests of applied write requests; a request that is repeated within the window of the gateway is acknowledged, not applied';

SELECT pg_catalog.pg_extension_config_dump('lanes.samples', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.samples_parameters', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.series_runs', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.metrics', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.requests', '');
-- lanes.registry is not dumped: a restore finds the row that CREATE EXTENSION has inserted. The trigger below sets the
-- counter from the series, and the new epoch is right, because it is another database.

CREATE FUNCTION lanes.follow_series() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    least    int4;
    greatest int4;
    next     int4;
BEGIN
    -- This is done here and not in register_series, so that rows of a restore or a copy count too: ids in use are never
    -- assigned again. The lock is taken whatever the ids are, so that series become visible in the order of their ids. The
    -- label index relies on that order.
    SELECT pg_catalog.min(a.first_id), pg_catalog.max(a.last_id) INTO least, greatest FROM added a;
    IF least IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT r.next_id INTO next FROM lanes.registry r FOR UPDATE;
    IF greatest >= next THEN
        UPDATE lanes.registry SET next_id = greatest + 1;
    END IF;
    IF next IS NULL OR least < next THEN
        PERFORM lanes.forget_label_index();
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER follow_series AFTER INSERT ON lanes.series_runs
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION lanes.follow_series();

-- A schema that exists already is used, and does not become a member of the extension.
DO $$
BEGIN
    IF pg_catalog.to_regnamespace('metrics') IS NULL THEN
        CREATE SCHEMA metrics;
        COMMENT ON SCHEMA metrics IS 'one view per Prometheus metric, created as metrics arrive';
    END IF;
END
$$;

-- Prometheus marks the end of a series with a NaN of exactly these bits. SQL's = does not distinguish NaNs, hence the
-- comparison of bytes. The first test is cheap and nearly always false.
CREATE FUNCTION lanes.is_stale_marker(value float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value = 'NaN'::float8 AND pg_catalog.float8send(value) = '\x7ff0000000000002'::bytea;

COMMENT ON FUNCTION lanes.is_stale_marker(float8) IS 'true for the NaN by which Prometheus marks the end of a series';

-- Returns the name of the view of a metric: the name of the metric if it fits an identifier, else its beginning, cut between
-- characters, and a hash.
CREATE FUNCTION lanes.metric_view_name(metric text) RETURNS name
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    head text := metric;
BEGIN
    IF octet_length(metric) <= 63 THEN
        RETURN metric::name;
    END IF;
    head := left(metric, 50);
    WHILE octet_length(head) > 50 LOOP
        head := left(head, -1);
    END LOOP;
    RETURN (head || '_' || left(encode(sha256(convert_to(metric, 'UTF8')), 'hex'), 12))::name;
END
$$;

CREATE FUNCTION lanes.create_metric_view(metric text) RETURNS name
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    chosen name := lanes.metric_view_name(metric);
BEGIN
    -- The name may be taken: by a view of a user, or by a metric that is spelled like the hashed name of another one.
    IF EXISTS (SELECT FROM pg_class c WHERE c.relname = chosen AND c.relnamespace = 'metrics'::regnamespace)
       OR EXISTS (SELECT FROM pg_type t WHERE t.typname = chosen AND t.typnamespace = 'metrics'::regnamespace)
       OR EXISTS (SELECT FROM lanes.metrics m WHERE m.view_name = chosen) THEN
        chosen := lanes.metric_view_name(rpad(metric, 64, ' ') || gen_random_uuid());
    END IF;
    -- security_invoker: the view shows nothing to roles that may not read the tables under it.
    EXECUTE format(
        'CREATE VIEW metrics.%I WITH (security_invoker = true) AS '
        'SELECT s.ts, s.value, s.series, r.labels '
        'FROM lanes.samples AS s JOIN lanes.metric_series(%L) AS r ON r.id = s.series '
        'WHERE NOT lanes.is_stale_marker(s.value)',
        chosen, metric);
    INSERT INTO lanes.metrics (metric, view_name) VALUES (metric, chosen);
    RETURN chosen;
END
$$;

-- Assigns consecutive ids to label sets, run after run, in the given order, and returns the first id. If ids beyond known_to
-- have been assigned, it does nothing and returns NULL: the caller must read those series first, because its label sets may
-- be among them. So a label set is one series although no index contains label sets: one caller registers at a time, and it
-- knows all registered series.
CREATE FUNCTION lanes.register_series(known_to int4, runs lanes.series_run[]) RETURNS int4
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_id   int4;
    new_metric text;
BEGIN
    IF known_to IS NULL OR coalesce(cardinality(runs), 0) = 0 THEN
        RAISE EXCEPTION 'lanes.register_series requires the last known id and at least one run'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT r.next_id INTO first_id FROM lanes.registry r FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lanes.registry has lost its row' USING ERRCODE = 'data_corrupted',
            HINT = 'INSERT INTO lanes.registry (next_id) SELECT coalesce(max(last_id), 0) + 1 FROM lanes.series_runs';
    END IF;
    IF first_id - 1 > known_to THEN
        RETURN NULL;
    END IF;

    FOR new_metric IN
        SELECT DISTINCT u.metric
          FROM unnest(runs) AS u
         WHERE NOT EXISTS (SELECT FROM lanes.metrics k WHERE k.metric = u.metric)
         ORDER BY 1
    LOOP
        PERFORM lanes.create_metric_view(new_metric);
    END LOOP;

    INSERT INTO lanes.series_runs (first_id, last_id, metric, labels)
    SELECT (first_id + ahead.series - cardinality(ahead.labels))::int4, (first_id + ahead.series - 1)::int4, ahead.metric,
           lanes.pack_label_sets(ahead.labels)
      FROM (SELECT u.metric, u.labels, sum(cardinality(u.labels)) OVER (ROWS UNBOUNDED PRECEDING) AS series
              FROM unnest(runs) AS u) AS ahead;
    -- The trigger of lanes.series_runs has advanced the counter.
    RETURN first_id;
END
$$;

COMMENT ON FUNCTION lanes.register_series(int4, lanes.series_run[]) IS
    'for lanes-gateway: registers label sets, which must be new, and returns the first of their consecutive ids; NULL if ids beyond known_to exist';

-- Returns the metric and the canonical labels of series, so that a gateway can verify which label set has an id.
CREATE FUNCTION lanes.find_series(ids int4[]) RETURNS TABLE (id int4, metric text, labels text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    -- Each run is unpacked once, however many of its series are requested.
    SELECT asked.id, r.metric, r.label_sets[asked.id - r.first_id + 1]
      FROM (SELECT found.first_id, array_agg(found.id) AS ids
              FROM (SELECT u.id, (SELECT max(n.first_id) FROM lanes.series_runs n WHERE n.first_id <= u.id) AS first_id
                      FROM unnest(ids) AS u (id)) AS found
             GROUP BY found.first_id) AS wanted
     CROSS JOIN LATERAL (SELECT n.first_id, n.last_id, n.metric, lanes.label_sets(n.labels) AS label_sets
                           FROM lanes.series_runs n WHERE n.first_id = wanted.first_id OFFSET 0) AS r
     CROSS JOIN LATERAL unnest(wanted.ids) AS asked (id)
     WHERE asked.id <= r.last_id
$$;

COMMENT ON FUNCTION lanes.find_series(int4[]) IS 'for lanes-gateway: the metric and the canonical labels of series by id; ids that do not exist are left out';

-- Returns the positions, from 1, of digests that exist already or occur twice: of all digests but those of `fresh`. `reused`
-- has the positions at which the body differs from the stored one.
CREATE FUNCTION lanes.requests_applied(digests bytea[], bodies bytea[], fresh bytea[],
                                       OUT applied int4[], OUT reused int4[])
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(d.place::int4 ORDER BY d.place),
           array_agg(d.place::int4 ORDER BY d.place) FILTER (WHERE r.body <> d.body)
      FROM (SELECT n.place, n.digest, n.body, row_number() OVER (PARTITION BY n.digest ORDER BY n.place) AS nth
              FROM unnest(digests, bodies) WITH ORDINALITY AS n (digest, body, place)) AS d
      LEFT JOIN lanes.requests r ON r.digest = d.digest
     WHERE d.nth > 1 OR d.digest <> ALL (coalesce(fresh, '{}'))
$$;

-- If some digests exist already, nothing is applied, and `applied` has their positions: the caller sends the batch again
-- without the rows of those requests. `reused` has the positions of those that came with another body. The function waits
-- for a digest whose first transaction is still in progress.
CREATE FUNCTION lanes.append_once(target regclass, batch bytea, digests bytea[], bodies bytea[] DEFAULT NULL,
                                  OUT applied int4[], OUT reused int4[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asked CONSTANT int4 := coalesce(cardinality(digests), 0);
    added int4;
    fresh bytea[];
BEGIN
    IF asked = 1 THEN
        -- A lone request takes a third less time this way than by the general one.
        INSERT INTO lanes.requests (digest, body)
        VALUES (digests[array_lower(digests, 1)], bodies[array_lower(bodies, 1)]) ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
    ELSIF asked > 1 THEN
        -- All calls insert in one order, so that two gateways with the same requests wait for each other and never deadlock.
        WITH inserted AS (
            INSERT INTO lanes.requests (digest, body)
            SELECT DISTINCT ON (d.digest) d.digest, d.body FROM unnest(digests, bodies) AS d (digest, body)
             ORDER BY d.digest
            ON CONFLICT DO NOTHING
            RETURNING requests.digest
        )
        SELECT count(*), array_agg(i.digest) INTO added, fresh FROM inserted i;
    END IF;
    IF added < asked THEN
        SELECT a.applied, a.reused INTO applied, reused FROM lanes.requests_applied(digests, bodies, fresh) a;
        -- An error would delete these too, but it would fill the server's log each time that a request is repeated.
        DELETE FROM lanes.requests r WHERE r.digest = ANY (fresh);
        RETURN;
    END IF;
    PERFORM lanes.append(target, batch);
END
$$;

COMMENT ON FUNCTION lanes.append_once(regclass, bytea, bytea[], bytea[]) IS
    'for lanes-gateway: calls lanes.append and stores the digests of the requests in the batch, in one transaction; or returns the positions of digests that exist';

CREATE FUNCTION lanes.forget_requests(older_than interval, rows_max int4 DEFAULT 10000) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    forgotten int8;
BEGIN
    IF older_than IS NULL OR older_than < interval '1 minute' THEN
        RAISE EXCEPTION 'requests younger than a minute are kept' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'A client may still be retrying them.';
    END IF;
    DELETE FROM lanes.requests
     WHERE ctid = ANY (ARRAY (SELECT r.ctid FROM lanes.requests r WHERE r.received_at < now() - older_than LIMIT rows_max));
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

COMMENT ON FUNCTION lanes.forget_requests(interval, int4) IS
    'for lanes-gateway: deletes at most rows_max digests that are older than the window; returns their number';

-- Series ids that a gateway has cached are valid for one registry on one timeline. A promoted standby may lack the last
-- registrations of the old primary and assign their ids to other series: its timeline differs, so gateways look ids up again.
-- After pg_upgrade the old cluster and the new one may both go on: the epoch of the latter names its system identifier.
CREATE FUNCTION lanes.registry_identity() RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s/%s%s/%s', o.scope, r.epoch,
                  CASE WHEN split_part(o.scope, '/', 1) <> s.system_identifier::text
                       THEN '-' || s.system_identifier END,
                  left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))
      FROM lanes.registry r, pg_control_system() s, lanes.object_scope() AS o (scope);
$$;

COMMENT ON FUNCTION lanes.registry_identity() IS 'for lanes-gateway: a text that changes whenever cached series ids may have another meaning';

-- A role that may not read pg_stat_replication may know whether commits wait for standbys in vain.
CREATE FUNCTION lanes.synchronous_standbys(OUT wanted int4, OUT connected int4)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN s.names = '' THEN 0
                ELSE coalesce(substring(s.names FROM '(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(')::int4, 1) END,
           (SELECT count(*)::int4 FROM pg_stat_replication r
             WHERE r.state = 'streaming' AND r.sync_state IN ('sync', 'quorum'))
      FROM current_setting('synchronous_standby_names') AS s (names)
$$;

COMMENT ON FUNCTION lanes.synchronous_standbys() IS
    'for lanes-gateway: how many synchronous standbys commits wait for, and how many of those are connected';

REVOKE ALL ON FUNCTION lanes.synchronous_standbys() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.follow_series() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.create_metric_view(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.register_series(int4, lanes.series_run[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.pack_label_sets(text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.label_sets(bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.metric_series(text, text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.metric_series_support(internal) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.find_series(int4[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.requests_applied(bytea[], bytea[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.append_once(regclass, bytea, bytea[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.forget_requests(interval, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.registry_identity() FROM PUBLIC;

-- Roles belong to the cluster, not to a database, so the extension creates none. It only grants what a gateway needs.
CREATE FUNCTION lanes.grant_gateway(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA lanes TO %s', role);
    EXECUTE format('GRANT INSERT ON lanes.samples TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT, DELETE ON lanes.requests TO %s', role);
    EXECUTE format('GRANT SELECT ON lanes.registry, lanes.series_runs, lanes.series_hashes TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.append(regclass, bytea) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.requests_applied(bytea[], bytea[], bytea[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.append_once(regclass, bytea, bytea[], bytea[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.append_placed(regclass, bytea), '
                   'lanes.append_logged(regclass, bytea, bytea[], bytea[], int4[], int4[]), '
                   'lanes.table_definition(oid), lanes.local_rows(), '
                   'lanes.timeline_history(), lanes.data_directory_id(), lanes.object_scope(), '
                   'lanes.definition_version(oid), lanes.column_names(oid), lanes.column_types(oid), '
                   'lanes.part_rows(regclass, int8) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.register_series(int4, lanes.series_run[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.find_series(int4[]), lanes.label_sets(bytea) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.forget_requests(interval, int4) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.registry_identity(), lanes.synchronous_standbys() TO %s', role);
    -- Object storage: these functions move segments of tables whose owners have set `hot`, whoever owns them.
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.offload_list(int4), lanes.segment_image(regclass, int8, int8), '
                   'lanes.offload_commit(regclass, int8), lanes.remote_keys(), lanes.recall_next(interval), '
                   'lanes.recall_supply(text, bytea), lanes.recall_fail(text, text) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON PROCEDURE lanes.recall_wait(interval) TO %s', role);
END
$$;

COMMENT ON FUNCTION lanes.grant_gateway(regrole) IS 'grants a role exactly the privileges that lanes-gateway needs';

CREATE FUNCTION lanes.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA lanes, metrics TO %s', role);
    EXECUTE format('GRANT SELECT ON lanes.samples, lanes.series_runs, lanes.series, lanes.metrics, lanes.label_runs, '
                   'lanes.label_blocks TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.metric_series(text, text[]), lanes.label_sets(bytea), '
                   'lanes.is_stale_marker(float8), lanes.series_ids(text, timestamptz, timestamptz), '
                   'lanes.label_names(text, timestamptz, timestamptz), '
                   'lanes.label_values(text, text, timestamptz, timestamptz), lanes.cardinality(text, int4), '
                   'lanes.selects_without_labels(text), '
                   'lanes.promql(text, timestamptz, interval), '
                   'lanes.promql_range(text, timestamptz, timestamptz, interval, interval), '
                   'lanes.promql_explain(text, timestamptz, timestamptz, interval, interval), '
                   'lanes.promql_api(text, timestamptz, timestamptz, interval, interval, int4, boolean) TO %s', role);
    -- Existing views of metrics, and future ones, which the owner of register_series creates.
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA metrics TO %s', role);
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA metrics GRANT SELECT ON TABLES TO %s',
                   (SELECT p.proowner::regrole FROM pg_proc p
                     WHERE p.oid = 'lanes.register_series(int4, lanes.series_run[])'::regprocedure), role);
END
$$;

COMMENT ON FUNCTION lanes.grant_reader(regrole) IS 'lets a role read samples, series and all views of metrics, including future ones';

REVOKE ALL ON FUNCTION lanes.grant_gateway(regrole) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.grant_reader(regrole) FROM PUBLIC;

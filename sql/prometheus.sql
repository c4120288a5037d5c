-- Prometheus data in PostgreSQL: few wide tables, one view a metric.
--
--   lanes.samples           every sample of every series; columnar
--   lanes.series_runs       label sets as they were registered, packed: one row for series of one metric with consecutive ids
--   lanes.series            the same, one row a series: a view; dense int4 ids
--   lanes.metrics           one row a metric name, and the view that shows it
--   lanes.registry          one row: the next series id, and the lock of registration
--   lanes.requests          digests of the write requests applied lately (exactly-once)
--   metrics."<metric>"      (ts, value, series, labels) of one metric
--
-- Who may do what: nothing here is granted to PUBLIC. `SELECT lanes.grant_gateway('role')` gives a gateway what it needs,
-- `SELECT lanes.grant_reader('role')` lets a role read. Registration runs as the owner of the extension because it creates views;
-- appending runs as the caller, so that the caller's INSERT privilege on the target decides.

CREATE TABLE lanes.samples (
    ts     timestamptz NOT NULL,
    series int4        NOT NULL,
    value  float8      NOT NULL
) USING lanes WITH (order_by = 'series, ts');

COMMENT ON TABLE lanes.samples IS
    'Prometheus samples as they came: out of order allowed, stale markers and NaN payloads kept to the bit';

-- A dump has no definitions of the extension's own tables, so the parameters that people give lanes.samples are kept in
-- a table that it has: ALTER TABLE writes all of them there, and rows that come there, with a restored dump, are given
-- to lanes.samples. It is empty until then, as a dump's rows must find none.
CREATE TABLE lanes.samples_parameters (
    name  text PRIMARY KEY,
    value text NOT NULL
);

COMMENT ON TABLE lanes.samples_parameters IS
    'storage parameters of lanes.samples, for pg_dump; change them by ALTER TABLE lanes.samples';

-- Called after each ALTER TABLE that sets or resets parameters of lanes.samples, by whoever may do that.
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
    -- A table that is empty tells nothing: a dump of a database in which nobody has set any has no rows.
    IF others IS NOT NULL AND EXISTS (SELECT FROM lanes.samples_parameters) THEN
        EXECUTE 'ALTER TABLE lanes.samples RESET (' || others || ')';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER set_samples_parameters AFTER INSERT ON lanes.samples_parameters
    FOR EACH STATEMENT EXECUTE FUNCTION lanes.set_samples_parameters();
-- Where a restore switches triggers off, too.
ALTER TABLE lanes.samples_parameters ENABLE ALWAYS TRIGGER set_samples_parameters;

REVOKE ALL ON FUNCTION lanes.set_samples_parameters() FROM PUBLIC;
-- It only writes down what is; default privileges may have taken it from PUBLIC.
GRANT EXECUTE ON FUNCTION lanes.keep_samples_parameters() TO PUBLIC;

-- Label sets, packed and unpacked.
CREATE FUNCTION lanes.pack_label_sets(label_sets text[]) RETURNS bytea
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'pack_label_sets_wrapper';
COMMENT ON FUNCTION lanes.pack_label_sets(text[]) IS 'label sets as lanes.series_runs has them';

CREATE FUNCTION lanes.label_sets(packed bytea) RETURNS text[]
    IMMUTABLE PARALLEL SAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'label_sets_wrapper';
COMMENT ON FUNCTION lanes.label_sets(bytea) IS 'label sets of a row of lanes.series_runs, in the order of their ids';

-- The log of registration. A row is what one call brought for one metric: a row, two index entries and a compressed value for many
-- series, where a row a series with its indexes would cost more than all the rest of ingest. Gateways find a label set
-- by its labels in memory, over all that is registered, and under the lock of lanes.registry they are made to know all
-- of it. Queries find series by labels in the label index (labels.sql), which is built afterwards.
--
-- Canonical labels: the JSON object of the labels without __name__, keys sorted by their bytes and distinct, no empty values, no white
-- space, escapes only where JSON demands them and as short as it allows. So two series are one if metric and labels are equal as text.
CREATE TABLE lanes.series_runs (
    first_id      int4        PRIMARY KEY CHECK (first_id > 0),
    last_id       int4        NOT NULL,
    metric        text        NOT NULL,
    labels        bytea       NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    CHECK (last_id >= first_id AND last_id - first_id = pg_catalog.cardinality(lanes.label_sets(labels)) - 1)
);

-- They are compressed already.
ALTER TABLE lanes.series_runs ALTER COLUMN labels SET STORAGE EXTERNAL;

CREATE INDEX series_runs_metric ON lanes.series_runs (metric);

COMMENT ON TABLE  lanes.series_runs IS 'Prometheus series as registered; read them in lanes.series';
COMMENT ON COLUMN lanes.series_runs.labels IS
    'canonical labels of series first_id to last_id: lanes.label_sets() unpacks them to JSON texts; two series are one if metric and text are equal';

CREATE TYPE lanes.series_run AS (metric text, labels text[]);

CREATE VIEW lanes.series WITH (security_invoker = true) AS
SELECT (r.first_id + u.place - 1)::int4 AS id, r.metric, u.labels::jsonb AS labels, r.registered_at
  FROM lanes.series_runs AS r
 CROSS JOIN LATERAL pg_catalog.unnest(lanes.label_sets(r.labels)) WITH ORDINALITY AS u (labels, place);

COMMENT ON VIEW   lanes.series IS 'Prometheus series: one row a label set';
COMMENT ON COLUMN lanes.series.labels IS 'the labels without __name__, which is column metric';

-- The series of one metric, for its view. As a function of fewer than 200 rows it has, to the planner, as many distinct
-- ids as rows, so a join hashes these and never the samples. The planner puts conditions of the query on labels into
-- `conditions`.
CREATE FUNCTION lanes.metric_series(metric text, conditions text[] DEFAULT NULL) RETURNS TABLE (id int4, labels jsonb)
    STABLE PARALLEL SAFE ROWS 190 LANGUAGE c AS 'MODULE_PATHNAME', 'metric_series_wrapper';

COMMENT ON FUNCTION lanes.metric_series(text, text[]) IS
    'ids and labels of the series of a metric; leave the conditions to the planner';

CREATE TABLE lanes.metrics (
    metric    text PRIMARY KEY,
    view_name name NOT NULL UNIQUE
);

COMMENT ON TABLE lanes.metrics IS
    'the view in schema metrics that shows each metric; a name past 63 bytes is cut and ends in a hash';

-- One row. Its lock serialises registration, so gateways agree on ids; its counter is transactional, so ids have no holes.
-- `epoch` tells a gateway that ids it remembers come from another registry (the extension was created anew).
CREATE TABLE lanes.registry (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    next_id  int4    NOT NULL,
    epoch    uuid    NOT NULL DEFAULT pg_catalog.gen_random_uuid()
);

INSERT INTO lanes.registry (next_id) VALUES (1);

CREATE TABLE lanes.requests (
    digest      bytea       PRIMARY KEY CHECK (pg_catalog.octet_length(digest) BETWEEN 8 AND 64),
    received_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    -- Where its rows lie, if a log of them is kept in object storage: rows of its batch before its own, its own rows, and the answer of
    -- lanes.append_placed.
    placed      int8[],
    -- A digest of what came with it, where `digest` is one of a name that its sender gave it.
    body        bytea       CHECK (pg_catalog.octet_length(body) BETWEEN 8 AND 64)
);

-- Rows arrive in time order and leave in time order, so a BRIN index serves the purge and costs ingest nothing.
CREATE INDEX requests_received_at ON lanes.requests USING brin (received_at) WITH (pages_per_range = 16, autosummarize = on);

COMMENT ON TABLE lanes.requests IS
    'digests of write requests already applied; a request that comes again within the gateway''s window is acked, not applied';

SELECT pg_catalog.pg_extension_config_dump('lanes.samples', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.samples_parameters', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.series_runs', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.metrics', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.requests', '');
-- lanes.registry is not dumped as it lies: a restore finds the row made by CREATE EXTENSION. The counter follows the series instead
-- (below), and the new epoch is right: it is another database.

CREATE FUNCTION lanes.follow_series() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    least    int4;
    greatest int4;
    next     int4;
BEGIN
    -- Here, and not in register_series, so that rows of a restore or a copy count too: ids in use are never handed out
    -- again. The lock is taken whatever the ids are: series become visible in the order of their ids, on which the
    -- label index relies.
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

-- A schema that was there before is used, not taken over.
DO $$
BEGIN
    IF pg_catalog.to_regnamespace('metrics') IS NULL THEN
        CREATE SCHEMA metrics;
        COMMENT ON SCHEMA metrics IS 'one view a Prometheus metric, made as metrics arrive';
    END IF;
END
$$;

-- Prometheus ends a series with a NaN of these very bits. SQL's = cannot tell NaNs apart, hence the bytes; the first test is there
-- because it is cheap and nearly always false.
CREATE FUNCTION lanes.is_stale_marker(value float8) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN value = 'NaN'::float8 AND pg_catalog.float8send(value) = '\x7ff0000000000002'::bytea;

COMMENT ON FUNCTION lanes.is_stale_marker(float8) IS 'true for the NaN by which Prometheus marks the end of a series';

-- The identifier that shows a metric: the name itself while it fits an identifier, else cut between characters and told apart by a hash.
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
    -- Something else may own the name already (a user's view, or a metric that spells another one's hashed name).
    IF EXISTS (SELECT FROM pg_class c WHERE c.relname = chosen AND c.relnamespace = 'metrics'::regnamespace)
       OR EXISTS (SELECT FROM pg_type t WHERE t.typname = chosen AND t.typnamespace = 'metrics'::regnamespace)
       OR EXISTS (SELECT FROM lanes.metrics m WHERE m.view_name = chosen) THEN
        chosen := lanes.metric_view_name(rpad(metric, 64, ' ') || gen_random_uuid());
    END IF;
    -- security_invoker: the view shows nothing to those who may not read the tables under it.
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

-- Gives consecutive ids to label sets, run after run, in the order given, and returns the first one; NULL, and nothing is done, if ids
-- beyond known_to have been given: the caller must look at those first, as its label sets may be among them. That is what makes a label
-- set one series although no index knows label sets: whoever registers knows all that is registered, and one at a time does it.
CREATE FUNCTION lanes.register_series(known_to int4, runs lanes.series_run[]) RETURNS int4
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first_id   int4;
    new_metric text;
BEGIN
    IF known_to IS NULL OR coalesce(cardinality(runs), 0) = 0 THEN
        RAISE EXCEPTION 'lanes.register_series wants the last id that is known, and at least one run'
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
    -- The trigger of lanes.series_runs has moved the counter.
    RETURN first_id;
END
$$;

COMMENT ON FUNCTION lanes.register_series(int4, lanes.series_run[]) IS
    'registers label sets, which must be new, and returns the first of their consecutive ids; NULL if ids beyond known_to exist';

-- Metric and canonical labels of ids, for a gateway that must know whether a label set is the one that it takes it for.
CREATE FUNCTION lanes.find_series(ids int4[]) RETURNS TABLE (id int4, metric text, labels text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    -- Each run is unpacked once, however many of its series are asked for.
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

COMMENT ON FUNCTION lanes.find_series(int4[]) IS 'metric and canonical labels of series, by id; ids that do not exist are left out';

-- The 1-based places of digests that are there already, or that come twice: all but those of `fresh`. `reused` has the
-- places where another body came with the digest than the one that is stored.
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

-- Where some digests are there already, `applied` has their places, and nothing is applied: send the batch again
-- without the rows of those requests. `reused` has those of them that came with another body. A digest whose first
-- transaction is still running is waited for, never guessed.
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
        -- A lone request, which waits for nothing else: a third less than the way of many.
        INSERT INTO lanes.requests (digest, body)
        VALUES (digests[array_lower(digests, 1)], bodies[array_lower(bodies, 1)]) ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS added = ROW_COUNT;
    ELSIF asked > 1 THEN
        -- In one order everywhere, so that two gateways with the same requests wait for each other and never deadlock.
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
        -- An error would undo these, and fill the server's log each time that a request is repeated.
        DELETE FROM lanes.requests r WHERE r.digest = ANY (fresh);
        RETURN;
    END IF;
    PERFORM lanes.append(target, batch);
END
$$;

COMMENT ON FUNCTION lanes.append_once(regclass, bytea, bytea[], bytea[]) IS
    'lanes.append, and the digests of the requests in the batch, in one transaction; or places of digests that exist';

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
    'deletes digests older than the window, at most rows_max; returns how many';

-- Series ids that a gateway remembers are good for one registry on one line of history. A promoted standby may lack the last
-- registrations of the old primary and give their ids to others: its timeline differs, so gateways ask again.
CREATE FUNCTION lanes.registry_identity() RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('%s/%s/%s/%s', s.system_identifier, d.oid, r.epoch,
                  left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))
      FROM lanes.registry r, pg_control_system() s, pg_database d
     WHERE d.datname = current_database();
$$;

COMMENT ON FUNCTION lanes.registry_identity() IS 'changes whenever series ids learned earlier may have another meaning';

-- Who may not see pg_stat_replication may know whether commits that wait for standbys wait in vain.
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
REVOKE ALL ON FUNCTION lanes.find_series(int4[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.requests_applied(bytea[], bytea[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.append_once(regclass, bytea, bytea[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.forget_requests(interval, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.registry_identity() FROM PUBLIC;

-- Roles belong to the cluster, not to a database, so the extension makes none: it only knows what a gateway needs.
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
                   'lanes.timeline_history(), lanes.data_directory_id(), '
                   'lanes.definition_version(oid), lanes.column_names(oid), lanes.column_types(oid), '
                   'lanes.part_rows(regclass, int8) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.register_series(int4, lanes.series_run[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.find_series(int4[]), lanes.label_sets(bytea) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.forget_requests(interval, int4) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.registry_identity(), lanes.synchronous_standbys() TO %s', role);
    -- Object storage: these give away and take back segments of tables whose owners have set `hot`, whoever they are.
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.offload_list(int4), lanes.segment_image(regclass, int8, int8), '
                   'lanes.offload_commit(regclass, int8), lanes.remote_keys(), lanes.recall_next(interval), '
                   'lanes.recall_supply(text, bytea), lanes.recall_fail(text, text) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON PROCEDURE lanes.recall_wait(interval) TO %s', role);
END
$$;

COMMENT ON FUNCTION lanes.grant_gateway(regrole) IS 'grants a role exactly what lanes-gateway needs';

CREATE FUNCTION lanes.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA lanes, metrics TO %s', role);
    EXECUTE format('GRANT SELECT ON lanes.samples, lanes.series_runs, lanes.series, lanes.metrics, lanes.label_runs, '
                   'lanes.label_blocks TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.metric_series(text, text[]), lanes.label_sets(bytea), '
                   'lanes.is_stale_marker(float8), lanes.series_ids(text), lanes.label_names(text), '
                   'lanes.label_values(text, text), lanes.cardinality(text, int4), '
                   'lanes.selects_without_labels(text) TO %s', role);
    -- Views of metrics that exist, and of those to come: these the owner of register_series creates.
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA metrics TO %s', role);
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA metrics GRANT SELECT ON TABLES TO %s',
                   (SELECT p.proowner::regrole FROM pg_proc p
                     WHERE p.oid = 'lanes.register_series(int4, lanes.series_run[])'::regprocedure), role);
END
$$;

COMMENT ON FUNCTION lanes.grant_reader(regrole) IS 'lets a role read samples, series and every metric view, those to come included';

REVOKE ALL ON FUNCTION lanes.grant_gateway(regrole) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.grant_reader(regrole) FROM PUBLIC;

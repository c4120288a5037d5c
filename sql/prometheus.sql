-- Prometheus data in PostgreSQL: few wide tables, one view a metric.
--
--   lanes.samples           every sample of every series; columnar
--   lanes.series            one row a label set; dense int4 ids
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

-- Label sets are compared by label_bytes, whole. The fingerprint (XXH3-128 of label_bytes) only finds candidates, so its index is
-- not unique on purpose: two label sets that share a fingerprint are two series.
CREATE TABLE lanes.series (
    id            int4        PRIMARY KEY,
    fingerprint   uuid        NOT NULL,
    metric        text        NOT NULL,
    labels        jsonb       NOT NULL,
    label_bytes   bytea       NOT NULL,
    registered_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE INDEX series_fingerprint ON lanes.series (fingerprint);
CREATE INDEX series_metric      ON lanes.series (metric);

COMMENT ON TABLE  lanes.series IS 'Prometheus series: one row a label set';
COMMENT ON COLUMN lanes.series.labels IS 'the labels without __name__, which is column metric';
COMMENT ON COLUMN lanes.series.label_bytes IS
    'the whole label set, __name__ included, as remote write 1.0 Label messages sorted by name; two series are one if these are equal';

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
    received_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

-- Rows arrive in time order and leave in time order, so a BRIN index serves the purge and costs ingest nothing.
CREATE INDEX requests_received_at ON lanes.requests USING brin (received_at) WITH (pages_per_range = 16, autosummarize = on);

COMMENT ON TABLE lanes.requests IS
    'digests of write requests already applied; a request that comes again within the gateway''s window is acked, not applied';

SELECT pg_catalog.pg_extension_config_dump('lanes.samples', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.series', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.metrics', '');
SELECT pg_catalog.pg_extension_config_dump('lanes.requests', '');
-- lanes.registry is not dumped as it lies: a restore finds the row made by CREATE EXTENSION. The counter follows the series instead
-- (below), and the new epoch is right: it is another database.

CREATE FUNCTION lanes.follow_series() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- Here, and not in register_series, so that rows of a restore or a copy count too: ids in use are never handed out again.
    UPDATE lanes.registry AS r
       SET next_id = loaded.next_id
      FROM (SELECT pg_catalog.max(id) + 1 AS next_id FROM added) AS loaded
     WHERE r.next_id < loaded.next_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER follow_series AFTER INSERT ON lanes.series
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
        'FROM lanes.samples AS s JOIN lanes.series AS r ON r.id = s.series '
        'WHERE r.metric = %L AND NOT lanes.is_stale_marker(s.value)',
        chosen, metric);
    INSERT INTO lanes.metrics (metric, view_name) VALUES (metric, chosen);
    RETURN chosen;
END
$$;

CREATE FUNCTION lanes.register_series(fingerprints uuid[], metrics text[], labels jsonb[], label_bytes bytea[]) RETURNS int4[]
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    asked   CONSTANT int4 := coalesce(cardinality(fingerprints), 0);
    ids     int4[];
    first_id int4;
    new_metric text;
BEGIN
    IF asked = 0 THEN
        RETURN '{}';
    END IF;
    IF cardinality(metrics) IS DISTINCT FROM asked OR cardinality(labels) IS DISTINCT FROM asked
       OR cardinality(label_bytes) IS DISTINCT FROM asked THEN
        RAISE EXCEPTION 'lanes.register_series wants four arrays of one length'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF array_position(fingerprints, NULL) IS NOT NULL OR array_position(metrics, NULL) IS NOT NULL
       OR array_position(labels, NULL) IS NOT NULL OR array_position(label_bytes, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'lanes.register_series takes no NULL elements' USING ERRCODE = 'null_value_not_allowed';
    END IF;

    -- Without the lock first: most calls after a gateway's restart ask for series that are all known.
    ids := lanes.find_series(fingerprints, label_bytes);
    IF array_position(ids, NULL) IS NULL THEN
        RETURN ids;
    END IF;

    -- Then with it. The statement after the lock takes a new snapshot and so sees what the previous holder committed.
    PERFORM FROM lanes.registry FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'lanes.registry has lost its row' USING ERRCODE = 'data_corrupted',
            HINT = 'INSERT INTO lanes.registry (next_id) SELECT coalesce(max(id), 0) + 1 FROM lanes.series';
    END IF;
    ids := lanes.find_series(fingerprints, label_bytes);

    FOR new_metric IN
        SELECT DISTINCT m.metric
          FROM unnest(metrics, ids) AS m (metric, id)
         WHERE m.id IS NULL AND NOT EXISTS (SELECT FROM lanes.metrics k WHERE k.metric = m.metric)
         ORDER BY 1
    LOOP
        PERFORM lanes.create_metric_view(new_metric);
    END LOOP;

    SELECT r.next_id INTO first_id FROM lanes.registry r;

    -- One label set may be asked for twice in a call; it is given one id.
    WITH wanted AS (
        SELECT DISTINCT ON (n.label_bytes) n.fingerprint, n.metric, n.labels, n.label_bytes, n.place
          FROM unnest(fingerprints, metrics, labels, label_bytes, ids)
               WITH ORDINALITY AS n (fingerprint, metric, labels, label_bytes, id, place)
         WHERE n.id IS NULL
         ORDER BY n.label_bytes, n.place
    ), numbered AS (
        SELECT w.*, row_number() OVER (ORDER BY w.place) - 1 AS nth FROM wanted w
    )
    INSERT INTO lanes.series (id, fingerprint, metric, labels, label_bytes)
    SELECT (first_id::int8 + n.nth)::int4, n.fingerprint, n.metric, n.labels, n.label_bytes FROM numbered n;
    -- The trigger of lanes.series has moved the counter.
    RETURN lanes.find_series(fingerprints, label_bytes);
END
$$;

-- Ids in the order asked for; NULL where there is none. Reads under the caller's snapshot, so it is VOLATILE: within register_series
-- each call must see what was committed a moment ago.
CREATE FUNCTION lanes.find_series(fingerprints uuid[], label_bytes bytea[]) RETURNS int4[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    ids int4[];
BEGIN
    SELECT array_agg(s.id ORDER BY n.place) INTO ids
      FROM unnest(fingerprints, label_bytes) WITH ORDINALITY AS n (fingerprint, label_bytes, place)
      LEFT JOIN lanes.series s ON s.fingerprint = n.fingerprint AND s.label_bytes = n.label_bytes;
    RETURN coalesce(ids, '{}');
END
$$;

COMMENT ON FUNCTION lanes.register_series(uuid[], text[], jsonb[], bytea[]) IS
    'ids of label sets, in order; those not known yet are registered, and new metrics get their view';

-- SQLSTATE LN001: some digests are there already. DETAIL lists their 1-based places, nothing has been applied: send the batch again
-- without the rows of those requests. A digest whose first transaction is still running is waited for, never guessed.
CREATE FUNCTION lanes.append_once(target regclass, batch bytea, digests bytea[]) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asked CONSTANT int4 := coalesce(cardinality(digests), 0);
    added int4;
    fresh bytea[];
BEGIN
    IF asked > 0 THEN
        -- In one order everywhere, so that two gateways with the same requests wait for each other and never deadlock.
        WITH inserted AS (
            INSERT INTO lanes.requests (digest)
            SELECT DISTINCT d.digest FROM unnest(digests) AS d (digest) ORDER BY d.digest
            ON CONFLICT DO NOTHING
            RETURNING digest
        )
        SELECT count(*), array_agg(i.digest) INTO added, fresh FROM inserted i;
        IF added < asked THEN
            RAISE EXCEPTION 'requests in this batch were applied before' USING
                ERRCODE = 'LN001',
                DETAIL = (
                    SELECT string_agg(d.place::text, ',' ORDER BY d.place)
                      FROM (SELECT n.place, n.digest, row_number() OVER (PARTITION BY n.digest ORDER BY n.place) AS nth
                              FROM unnest(digests) WITH ORDINALITY AS n (digest, place)) AS d
                     WHERE d.nth > 1 OR d.digest <> ALL (coalesce(fresh, '{}'))),
                HINT = 'Send the batch again without the rows of the requests at these places.';
        END IF;
    END IF;
    RETURN lanes.append(target, batch);
END
$$;

COMMENT ON FUNCTION lanes.append_once(regclass, bytea, bytea[]) IS
    'lanes.append, and the digests of the requests that the batch holds, in one transaction; SQLSTATE LN001 names digests already there';

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

REVOKE ALL ON FUNCTION lanes.follow_series() FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.create_metric_view(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.register_series(uuid[], text[], jsonb[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.find_series(uuid[], bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.append_once(regclass, bytea, bytea[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.forget_requests(interval, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.registry_identity() FROM PUBLIC;

-- Roles belong to the cluster, not to a database, so the extension makes none: it only knows what a gateway needs.
CREATE FUNCTION lanes.grant_gateway(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA lanes TO %s', role);
    EXECUTE format('GRANT INSERT ON lanes.samples TO %s', role);
    EXECUTE format('GRANT SELECT, INSERT ON lanes.requests TO %s', role);
    EXECUTE format('GRANT SELECT ON lanes.registry TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.append(regclass, bytea) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.append_once(regclass, bytea, bytea[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.register_series(uuid[], text[], jsonb[], bytea[]) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.forget_requests(interval, int4) TO %s', role);
    EXECUTE format('GRANT EXECUTE ON FUNCTION lanes.registry_identity() TO %s', role);
END
$$;

COMMENT ON FUNCTION lanes.grant_gateway(regrole) IS 'grants a role exactly what lanes-gateway needs';

CREATE FUNCTION lanes.grant_reader(role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA lanes, metrics TO %s', role);
    EXECUTE format('GRANT SELECT ON lanes.samples, lanes.series, lanes.metrics TO %s', role);
    -- Views of metrics that exist, and of those to come: these the owner of register_series creates.
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA metrics TO %s', role);
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA metrics GRANT SELECT ON TABLES TO %s',
                   (SELECT p.proowner::regrole FROM pg_proc p
                     WHERE p.oid = 'lanes.register_series(uuid[], text[], jsonb[], bytea[])'::regprocedure), role);
END
$$;

COMMENT ON FUNCTION lanes.grant_reader(regrole) IS 'lets a role read samples, series and every metric view, those to come included';

REVOKE ALL ON FUNCTION lanes.grant_gateway(regrole) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.grant_reader(regrole) FROM PUBLIC;

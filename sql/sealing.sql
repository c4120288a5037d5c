-- Sealing on request.

CREATE FUNCTION lanes.oldest_snapshot() RETURNS text
    VOLATILE PARALLEL RESTRICTED LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    SELECT holder
      FROM (SELECT CASE WHEN pid = pg_backend_pid() THEN 'this transaction'
                        ELSE format('session %s (%s)', pid, concat_ws(', ', nullif(application_name, ''), usename, state)) END,
                   greatest(age(backend_xid), age(backend_xmin))
              FROM pg_stat_activity
             WHERE (datname = current_database() OR datname IS NULL) AND backend_type <> 'autovacuum worker'
            UNION ALL
            SELECT format('prepared transaction %L', gid), age(transaction) FROM pg_prepared_xacts WHERE database = current_database()
            UNION ALL
            SELECT format('replication slot %I', slot_name), age(xmin) FROM pg_replication_slots) AS held(holder, age)
     WHERE age IS NOT NULL
     ORDER BY age DESC, holder = 'this transaction'
     LIMIT 1
$$;
COMMENT ON FUNCTION lanes.oldest_snapshot() IS
    'the holder of the oldest snapshot or transaction of this database; rows that were committed later cannot be sealed yet';

CREATE FUNCTION lanes.seal(target regclass) RETURNS bigint
    VOLATILE PARALLEL UNSAFE STRICT LANGUAGE c AS 'MODULE_PATHNAME', 'seal_table_wrapper';
COMMENT ON FUNCTION lanes.seal(regclass) IS
    'seals all rows of a lanes table that every snapshot sees, and merges its parts; returns the number of rows written';

-- What the gateway asks of the extension to offload and to recall segments, over a table of stock PostgreSQL: an image is local while it is
-- there and remote when it is gone.
CREATE SCHEMA lanes;
CREATE TABLE lanes.fake_segments (part int8, first_row int8, image bytea, digest text, remote bool DEFAULT false, key text);
CREATE TABLE lanes.fake_wanted (key text, digest text, reason text);

CREATE FUNCTION lanes.fake_seal(part int8, segments int, bytes int) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lanes.fake_segments
    SELECT fake_seal.part, n, i.image, md5(i.image), false,
           format('%s/%s/00000000000000aa/%s/%s', s.system_identifier, d.oid, fake_seal.part, n)
      FROM generate_series(1, segments) n, pg_control_system() s, pg_database d,
           LATERAL (SELECT substr(decode(string_agg(md5((fake_seal.part * 1000 + n)::text || m), ''), 'hex'), 1, bytes) AS image
                      FROM generate_series(1, bytes / 16 + 1) m) i
     WHERE d.datname = current_database()
$$;

CREATE FUNCTION lanes.offload_list(wanted int)
RETURNS TABLE (target regclass, part bigint, first_row bigint, rows bigint, bytes bigint, key text) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT 'lanes.fake_segments'::regclass, f.part, f.first_row, 10::bigint, length(f.image)::bigint, f.key
      FROM lanes.fake_segments f WHERE NOT f.remote ORDER BY f.part, f.first_row
$$;

CREATE FUNCTION lanes.segment_image(target regclass, part bigint, first_row bigint) RETURNS bytea LANGUAGE sql SECURITY DEFINER AS $$
    SELECT f.image FROM lanes.fake_segments f WHERE f.part = segment_image.part AND f.first_row = segment_image.first_row
$$;

CREATE FUNCTION lanes.offload_commit(target regclass, part bigint) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE lanes.fake_segments f SET remote = true, image = NULL WHERE f.part = offload_commit.part;
    RETURN FOUND;
END
$$;

CREATE FUNCTION lanes.part_rows(target regclass, part bigint) RETURNS TABLE (storage_id bigint, first_row bigint, end_row bigint) LANGUAGE sql AS $$
    SELECT 170::bigint, part * 1000, part * 1000 + 1000
$$;

CREATE FUNCTION lanes.local_rows() RETURNS TABLE (target oid, storage_id bigint, first_row bigint, end_row bigint) LANGUAGE sql AS $$
    SELECT 'lanes.fake_segments'::regclass::oid, 170::bigint, 0::bigint, 0::bigint
$$;

CREATE FUNCTION lanes.timeline_history(OUT timeline oid, OUT file text) LANGUAGE sql AS $$ SELECT 1::oid, NULL::text $$;

CREATE FUNCTION lanes.object_scope() RETURNS text LANGUAGE sql AS $$
    SELECT format('%s/%s', s.system_identifier, d.oid) FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
$$;

CREATE FUNCTION lanes.data_directory_id() RETURNS text LANGUAGE sql AS $$ SELECT 'a' $$;

CREATE FUNCTION lanes.column_types(target oid) RETURNS text[] LANGUAGE sql AS $$ SELECT NULL::text[] $$;
CREATE FUNCTION lanes.definition_version(target oid) RETURNS int8 LANGUAGE sql AS $$ SELECT 1::int8 $$;
CREATE FUNCTION lanes.table_definition(target oid) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;

CREATE FUNCTION lanes.remote_keys() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS $$
    SELECT f.key FROM lanes.fake_segments f WHERE f.remote
$$;

CREATE PROCEDURE lanes.recall_wait(timeout interval) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    until timestamptz := clock_timestamp() + timeout;
BEGIN
    WHILE NOT EXISTS (SELECT FROM lanes.fake_wanted w WHERE w.digest IS NULL AND w.reason IS NULL) AND clock_timestamp() < until LOOP
        PERFORM pg_sleep(0.02);
    END LOOP;
END
$$;

CREATE FUNCTION lanes.recall_next(timeout interval) RETURNS TABLE (key text) LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    until timestamptz := clock_timestamp() + timeout;
BEGIN
    LOOP
        RETURN QUERY SELECT w.key FROM lanes.fake_wanted w WHERE w.digest IS NULL AND w.reason IS NULL;
        EXIT WHEN FOUND OR clock_timestamp() > until;
        PERFORM pg_sleep(0.02);
    END LOOP;
END
$$;

CREATE FUNCTION lanes.recall_supply(key text, image bytea) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE lanes.fake_wanted w SET digest = md5(image) WHERE w.key = recall_supply.key
$$;

CREATE FUNCTION lanes.recall_fail(key text, reason text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE lanes.fake_wanted w SET reason = recall_fail.reason WHERE w.key = recall_fail.key
$$;

GRANT USAGE ON SCHEMA lanes TO lanes_gateway;

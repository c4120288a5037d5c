-- The database's part in a log of rows in object storage: rows with their places, table definitions
-- as statements, rows that are only here, and the restore.
CREATE ROLE object_log_reader;
CREATE TABLE far (gone int, n int8 NOT NULL, host text COLLATE "C", ts timestamptz) USING lanes WITH (order_by = 'host, n', hot = '1 day');
INSERT INTO far SELECT g, -g, 'sql', '2020-01-01 00:00+00' FROM generate_series(1, 1000) g;
ALTER TABLE far DROP COLUMN gone;
ALTER TABLE far ADD COLUMN late text NOT NULL DEFAULT 'bef''ore';
ALTER TABLE far ALTER COLUMN late DROP DEFAULT;
ALTER TABLE far ALTER COLUMN ts SET DEFAULT '2020-01-01 00:00+00';
ALTER TABLE far ADD CONSTRAINT small CHECK (n < 1000000);
GRANT SELECT ON far TO object_log_reader;
SELECT jsonb_pretty(lanes.table_definition('far'::regclass) - 'owner');
SELECT jsonb_pretty(lanes.table_definition('lanes.samples'::regclass));
SELECT lanes.table_definition(1);

-- Renaming an object in a definition creates another version of it, as every other change does, and
-- nothing else does.
CREATE SCHEMA object_log_schema;
CREATE TYPE object_log_schema.mood AS ENUM ('calm');
CREATE ROLE object_log_owner;
CREATE TABLE object_log_schema.named (n int, m object_log_schema.mood) USING lanes;
GRANT SELECT (n) ON object_log_schema.named TO object_log_reader;
CREATE POLICY own ON object_log_schema.named TO object_log_owner USING (n > 0);
ALTER TABLE object_log_schema.named OWNER TO object_log_owner;
CREATE TEMPORARY TABLE versions (what text, version int8);
CREATE PROCEDURE note_version(what text) LANGUAGE sql AS $$
    INSERT INTO versions SELECT what, lanes.definition_version('object_log_schema.named'::regclass)
$$;
CALL note_version('nothing');
CALL note_version('nothing');
ALTER TYPE object_log_schema.mood RENAME TO temper; CALL note_version('type');
ALTER ROLE object_log_reader RENAME TO object_log_reader2; CALL note_version('grantee');
ALTER ROLE object_log_owner RENAME TO object_log_owner2; CALL note_version('owner');
ALTER SCHEMA object_log_schema RENAME TO object_log_schema2;
CREATE OR REPLACE PROCEDURE note_version(what text) LANGUAGE sql AS $$
    INSERT INTO versions SELECT what, lanes.definition_version('object_log_schema2.named'::regclass)
$$;
CALL note_version('schema');
SELECT count(*), count(DISTINCT version), string_agg(DISTINCT what, ', ') FROM versions;
ALTER ROLE object_log_reader2 RENAME TO object_log_reader;
DROP SCHEMA object_log_schema2 CASCADE;
DROP ROLE object_log_owner2;
DROP PROCEDURE note_version;

-- Rows are only here, sealed or not, until their segments are in object storage.
CREATE VIEW here AS SELECT first_row, end_row FROM lanes.local_rows() WHERE target = 'far'::regclass;
SELECT * FROM here;
SELECT lanes.seal('far');
SELECT * FROM here;
SELECT p.first_row, p.end_row FROM lanes.offload_list(10) o, lanes.part_rows(o.target, o.part) p WHERE o.target = 'far'::regclass;
SELECT * FROM lanes.part_rows('far', 12345);
CREATE TEMPORARY TABLE object AS
    SELECT target, part, lanes.segment_image(target, part, first_row) AS image FROM lanes.offload_list(10) WHERE target = 'far'::regclass;
SELECT lanes.offload_commit(target, part) FROM object;
SELECT * FROM here;
INSERT INTO far VALUES (1, 'sql', DEFAULT, 'after');
SELECT * FROM here;
BEGIN;
INSERT INTO far VALUES (2, 'sql', DEFAULT, 'never');
ROLLBACK;

-- The restore.
DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT replace(jsonb_array_elements_text(lanes.table_definition('far'::regclass) -> 'create'), 'public.far', 'public.again')
    LOOP
        EXECUTE statement;
    END LOOP;
END
$$;
CREATE UNIQUE INDEX ON again (n);
SELECT lanes.restore_segment('again', image) FROM object;
-- The index knows the restored rows, and refuses them a second time.
SET enable_seqscan = off; SET lanes.vectorize = off;
EXPLAIN (COSTS OFF) SELECT n, host FROM again WHERE n = -1000;
SELECT n, host FROM again WHERE n = -1000;
RESET enable_seqscan; RESET lanes.vectorize;
SELECT lanes.restore_segment('again', image) FROM object;
SELECT * FROM lanes.check('again');
-- Deferrable constraints are checked at once.
DROP INDEX again_n_idx;
ALTER TABLE again ADD CONSTRAINT again_key UNIQUE (n) DEFERRABLE INITIALLY DEFERRED;
SELECT lanes.restore_segment('again', image) FROM object;
ALTER TABLE again DROP CONSTRAINT again_key, ADD CONSTRAINT again_excluded EXCLUDE (n WITH =) DEFERRABLE INITIALLY DEFERRED;
SELECT lanes.restore_segment('again', image) FROM object;
ALTER TABLE again DROP CONSTRAINT again_excluded;
SELECT count(*), min(n), max(n), min(host), min(ts) = '2020-01-01 00:00+00' AS ts, min(late), max(late) FROM again;
SELECT lanes.restore_segment('again', 'no image');
SELECT lanes.restore_segment('object_log_heap', image) FROM object;
CREATE TABLE object_log_heap (n int);
SELECT lanes.restore_segment('object_log_heap', image) FROM object;
CREATE TABLE other (host text, n int8) USING lanes;
SELECT lanes.restore_segment('other', image) FROM object;
SELECT timeline, file IS NULL AS is_first FROM lanes.timeline_history();
SET ROLE object_log_reader;
SELECT lanes.restore_segment('again', 'no image');
SELECT * FROM lanes.local_rows();
SELECT * FROM lanes.timeline_history();
RESET ROLE;

DROP VIEW here;
DROP TABLE far, again, other, object, object_log_heap;
DROP ROLE object_log_reader;

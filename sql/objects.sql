-- What a log of rows in object storage wants of the database: an append that tells where its rows lie, and definitions of tables.

-- Appends a batch and its requests' digests in one transaction, and tells where the rows lie (see lanes.append_placed). Of each request,
-- `skips` and `counts` tell which rows of the batch are its own; that is kept with its digest, so that a request that comes again can be
-- logged again. `version` changes whenever lanes.table_definition may.
--
-- SQLSTATE LN001 is as in lanes.append_once. Digests come last here, as only the append knows what is kept with them: a duplicate that
-- commits meanwhile costs a run that nobody sees.
CREATE FUNCTION lanes.append_logged(target regclass, batch bytea, digests bytea[], skips int4[], counts int4[],
                                    OUT placed int8[], OUT version int8)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asked CONSTANT int4 := coalesce(cardinality(digests), 0);
    added int4 := 0;
    fresh bytea[];
BEGIN
    IF coalesce(cardinality(skips), 0) <> asked OR coalesce(cardinality(counts), 0) <> asked THEN
        RAISE EXCEPTION 'lanes.append_logged wants a skip and a count for each digest' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(d.digest) INTO fresh
      FROM unnest(digests) AS d (digest)
     WHERE NOT EXISTS (SELECT FROM lanes.requests r WHERE r.digest = d.digest);
    IF asked = coalesce(cardinality(fresh), 0) THEN
        placed := lanes.append_placed(target, batch);
        -- In one order everywhere, so that two gateways with the same requests wait for each other and never deadlock.
        WITH inserted AS (
            INSERT INTO lanes.requests (digest, placed)
            SELECT d.digest, ARRAY[d.skip, d.count]::int8[] || append_logged.placed
              FROM unnest(digests, skips, counts) AS d (digest, skip, count) ORDER BY d.digest
            ON CONFLICT DO NOTHING
            RETURNING requests.digest
        )
        SELECT count(*), array_agg(i.digest) INTO added, fresh FROM inserted i;
    END IF;
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
    SELECT c.xmin::text::int8 INTO version FROM pg_class c WHERE c.oid = target;
END
$$;

COMMENT ON FUNCTION lanes.append_logged(regclass, bytea, bytea[], int4[], int4[]) IS
    'lanes.append_placed, and the digests of the requests that the batch holds, in one transaction; SQLSTATE LN001 names digests already there';

-- A table as statements that make it again, in an empty database. Columns are at the places where they were, with dropped ones between
-- them, and values of columns that were added later are those that old rows have: images of segments know columns by their places only.
--
--   create    before its rows; no defaults, constraints or indexes
--   finish    after them
--   grants    {role, statement}: for roles that are there
CREATE FUNCTION lanes.table_definition(target oid) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp
-- Values are written as any session reads them.
SET datestyle = 'ISO, YMD' SET timezone = 'UTC' SET intervalstyle = 'postgres' SET extra_float_digits = 1 SET bytea_output = 'hex'
AS $$
DECLARE
    spelt     text;
    class     record;
    is_member boolean;
    options   text;
    head      text[] := '{}';
    creating  text[] := '{}';
    drops     text[] := '{}';
    finishing text[] := '{}';
    later     boolean := false;
    attribute record;
    clause    text;
    old_value text;
BEGIN
    SELECT n.nspname, c.relname, c.relowner, c.relpersistence, c.reloptions, c.relispartition, c.relacl INTO class
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = target AND c.relkind = 'r';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    spelt := format('%I.%I', class.nspname, class.relname);
    is_member := EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = target AND d.deptype = 'e');
    SELECT string_agg(format('%I = %L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ') INTO options
      FROM unnest(class.reloptions) AS o;

    FOR attribute IN
        SELECT a.attnum, a.attname, a.attisdropped, a.attnotnull, a.attgenerated, a.attidentity, a.atthasmissing,
               a.attmissingval::text AS missing, format_type(a.atttypid, a.atttypmod) AS type,
               pg_get_expr(d.adbin, d.adrelid) AS expression, c.collname, n.nspname AS collation_schema
          FROM pg_attribute a
          LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
          LEFT JOIN pg_type t ON t.oid = a.atttypid
          LEFT JOIN pg_collation c ON c.oid = a.attcollation AND a.attcollation <> t.typcollation
          LEFT JOIN pg_namespace n ON n.oid = c.collnamespace
         WHERE a.attrelid = target AND a.attnum > 0
         ORDER BY a.attnum
    LOOP
        old_value := NULL;
        IF attribute.attisdropped THEN
            clause := format('%I boolean', '........lanes.dropped.' || attribute.attnum);
            drops := drops || format('ALTER TABLE %s DROP COLUMN %I', spelt, '........lanes.dropped.' || attribute.attnum);
        ELSE
            clause := format('%I %s', attribute.attname, attribute.type);
            IF attribute.collname IS NOT NULL THEN
                clause := clause || format(' COLLATE %I.%I', attribute.collation_schema, attribute.collname);
            END IF;
            IF attribute.attgenerated = 's' THEN
                clause := clause || format(' GENERATED ALWAYS AS (%s) STORED', attribute.expression);
            ELSIF attribute.attidentity <> '' THEN
                clause := clause || CASE attribute.attidentity WHEN 'a' THEN ' GENERATED ALWAYS AS IDENTITY'
                                                               ELSE ' GENERATED BY DEFAULT AS IDENTITY' END;
            ELSE
                IF attribute.atthasmissing THEN
                    old_value := quote_literal((attribute.missing::text[])[1]);
                    clause := clause || ' DEFAULT ' || coalesce(old_value || '::' || attribute.type, 'NULL');
                    finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', spelt, attribute.attname);
                END IF;
                IF attribute.expression IS NOT NULL THEN
                    finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', spelt, attribute.attname,
                                                     attribute.expression);
                END IF;
            END IF;
            IF attribute.attnotnull AND attribute.attidentity = '' THEN
                clause := clause || ' NOT NULL';
            END IF;
        END IF;
        later := later OR coalesce(attribute.atthasmissing, false);
        IF later THEN
            creating := creating || format('ALTER TABLE %s ADD COLUMN %s', spelt, clause);
        ELSE
            head := head || clause;
        END IF;
    END LOOP;
    IF is_member THEN
        creating := CASE WHEN options IS NULL THEN '{}'::text[] ELSE ARRAY[format('ALTER TABLE %s SET (%s)', spelt, options)] END;
        finishing := '{}';
    ELSE
        creating := ARRAY[format('CREATE SCHEMA IF NOT EXISTS %I', class.nspname),
                          format('CREATE %sTABLE %s (%s) USING lanes%s', CASE class.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END,
                                 spelt, array_to_string(head, ', '), coalesce(' WITH (' || options || ')', ''))] || creating || drops;
        finishing := finishing || coalesce((
            SELECT array_agg(format('ALTER TABLE %s ADD CONSTRAINT %I %s', spelt, k.conname, pg_get_constraintdef(k.oid))
                             ORDER BY k.contype = 'f', k.conname)
              FROM pg_constraint k WHERE k.conrelid = target AND k.contype IN ('c', 'p', 'u', 'x', 'f') AND k.conislocal), '{}');
        finishing := finishing || coalesce((
            SELECT array_agg(pg_get_indexdef(i.indexrelid) ORDER BY i.indexrelid)
              FROM pg_index i
             WHERE i.indrelid = target AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = target)),
            '{}');
    END IF;
    RETURN jsonb_build_object(
        'schema', class.nspname, 'name', class.relname, 'table', spelt,
        'owner', CASE WHEN NOT is_member THEN pg_get_userbyid(class.relowner) END,
        'is_partition', class.relispartition,
        'create', to_jsonb(creating), 'finish', to_jsonb(finishing),
        'grants', coalesce((
            SELECT jsonb_agg(jsonb_build_object('role', r.rolname, 'statement', format('GRANT %s ON %s TO %I', p.privilege_type, spelt, r.rolname)))
              FROM aclexplode(class.relacl) AS p JOIN pg_roles r ON r.oid = p.grantee
             WHERE p.grantee <> class.relowner AND NOT is_member), '[]'));
END
$$;

COMMENT ON FUNCTION lanes.table_definition(oid) IS
    'for lanes-gateway: a table as statements that make it again in an empty database';

REVOKE ALL ON FUNCTION lanes.append_logged(regclass, bytea, bytea[], int4[], int4[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.table_definition(oid) FROM PUBLIC;

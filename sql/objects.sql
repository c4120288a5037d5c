-- Functions for the log of rows in object storage: an append that returns where its rows are stored, and definitions of
-- tables.

-- Returns a number that changes whenever something changes that lanes.table_definition() contains. Names of schemas, roles
-- and types are included.
CREATE FUNCTION lanes.definition_version(target oid) RETURNS int8
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
    SELECT hashtextextended(string_agg(part, ' ' ORDER BY part), 0)
      FROM (SELECT 'class ' || c.xmin FROM pg_class c WHERE c.oid = target
            UNION ALL SELECT format('attribute %s %s', a.attnum, a.xmin) FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0
            UNION ALL SELECT format('default %s %s', d.oid, d.xmin) FROM pg_attrdef d WHERE d.adrelid = target
            UNION ALL SELECT format('constraint %s %s', k.oid, k.xmin) FROM pg_constraint k WHERE k.conrelid = target
            UNION ALL SELECT format('index %s %s', i.indexrelid, i.xmin) FROM pg_index i WHERE i.indrelid = target
            UNION ALL SELECT format('sequence %s %s %s', c.oid, c.xmin, q.xmin)
              FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S' JOIN pg_sequence q ON q.seqrelid = c.oid
             WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = target
            UNION ALL SELECT format('policy %s %s %s', y.oid, y.xmin, y.polroles::regrole[])
              FROM pg_policy y WHERE y.polrelid = target
            UNION ALL SELECT format('names %s %s %s', c.relnamespace::regnamespace, c.relowner::regrole, c.relacl)
              FROM pg_class c WHERE c.oid = target
            UNION ALL SELECT format('column %s %s %s', a.attnum, format_type(a.atttypid, a.atttypmod), a.attacl)
              FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped) AS parts (part)
$$;

COMMENT ON FUNCTION lanes.definition_version(oid) IS
    'for lanes-gateway: a number that changes whenever the result of lanes.table_definition() may change';

-- Returns the names of the columns of a table by attribute number, with NULL for dropped columns.
CREATE FUNCTION lanes.column_names(target oid) RETURNS name[]
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(CASE WHEN NOT a.attisdropped THEN a.attname END ORDER BY a.attnum)
      FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0
$$;

COMMENT ON FUNCTION lanes.column_names(oid) IS
    'for lanes-gateway: the names of the columns of a table by attribute number, NULL for dropped columns';

-- Returns the types of the columns of a table by attribute number, with NULL for dropped columns.
CREATE FUNCTION lanes.column_types(target oid) RETURNS text[]
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp
AS $$
    SELECT array_agg(CASE WHEN NOT a.attisdropped THEN format_type(a.atttypid, a.atttypmod) END ORDER BY a.attnum)
      FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0
$$;

COMMENT ON FUNCTION lanes.column_types(oid) IS
    'for lanes-gateway: the types of the columns of a table by attribute number, NULL for dropped columns';

-- Appends a batch and the digests of its requests in one transaction, and returns where the rows are stored (see
-- lanes.append_placed). `skips` and `counts` say which rows of the batch belong to each request. They are stored with its
-- digest, so that a repeated request can be logged again. `version` is the lanes.definition_version() and `columns` the
-- lanes.column_names() of the table: with them, a restore finds the columns of the rows after renames and drops.
--
-- `applied` and `reused` are as in lanes.append_once. The digests are inserted last, because only the append knows what is
-- stored with them. A duplicate that commits in the meantime raises SQLSTATE LN001, and costs a run that nobody sees.
CREATE FUNCTION lanes.append_logged(target regclass, batch bytea, digests bytea[], bodies bytea[], skips int4[],
                                    counts int4[], OUT placed int8[], OUT version int8, OUT columns name[],
                                    OUT applied int4[], OUT reused int4[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    asked CONSTANT int4 := coalesce(cardinality(digests), 0);
    added int4;
    fresh bytea[];
BEGIN
    IF coalesce(cardinality(skips), 0) <> asked OR coalesce(cardinality(counts), 0) <> asked THEN
        RAISE EXCEPTION 'lanes.append_logged requires a skip and a count for each digest' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT array_agg(d.digest) INTO fresh
      FROM unnest(digests) AS d (digest)
     WHERE NOT EXISTS (SELECT FROM lanes.requests r WHERE r.digest = d.digest);
    IF asked > coalesce(cardinality(fresh), 0) THEN
        SELECT a.applied, a.reused INTO applied, reused FROM lanes.requests_applied(digests, bodies, fresh) a;
        RETURN;
    END IF;
    placed := lanes.append_placed(target, batch);
    -- All calls insert in one order, so that two gateways with the same requests wait for each other and never deadlock.
    INSERT INTO lanes.requests (digest, body, placed)
    SELECT d.digest, d.body, ARRAY[d.skip, d.count]::int8[] || append_logged.placed
      FROM unnest(digests, bodies, skips, counts) AS d (digest, body, skip, count) ORDER BY d.digest
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    IF added < asked THEN
        RAISE EXCEPTION 'requests in this batch were applied in the meantime' USING
            ERRCODE = 'LN001',
            HINT = 'Send the batch again; the result then has their positions.';
    END IF;
    version := lanes.definition_version(target);
    columns := lanes.column_names(target);
END
$$;

COMMENT ON FUNCTION lanes.append_logged(regclass, bytea, bytea[], bytea[], int4[], int4[]) IS
    'for lanes-gateway: calls lanes.append_placed and stores the digests of the requests in the batch, in one transaction; or returns the positions of digests that exist';

-- Returns a table as statements that create it again in an empty database. Columns keep their attribute numbers, with
-- dropped columns between them, because images of segments identify columns by attribute number only. A column that was
-- added later gets the value that older rows have in it.
--
--   columns   names by attribute number
--   create    statements to run before rows are inserted: no defaults, constraints or indexes
--   guard     statements to run once all tables exist: row-level security, without which the table must not be restored
--   finish    statements to run after rows are inserted
--   added     {place, type, value}: the value of a column in rows that are older than it, as far as the catalogue has it
--   grants    {role, statement}: for roles that exist; role is NULL for PUBLIC
CREATE FUNCTION lanes.table_definition(target oid) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp
-- Every session can read values that are written with these settings.
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
    guarding  text[] := '{}';
    finishing text[] := '{}';
    added     jsonb := '[]';
    later     boolean := false;
    attribute record;
    clause    text;
    old_value text;
    policy    record;
    sequence  record;
BEGIN
    SELECT n.nspname, c.relname, c.relowner, c.relpersistence, c.reloptions, c.relispartition, c.relacl, c.relrowsecurity,
           c.relforcerowsecurity INTO class
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
            ELSE
                IF attribute.atthasmissing THEN
                    old_value := quote_literal((attribute.missing::text[])[1]);
                    clause := clause || ' DEFAULT ' || coalesce(old_value || '::' || attribute.type, 'NULL');
                    added := added || jsonb_build_object('place', attribute.attnum, 'type', attribute.type,
                                                         'value', (attribute.missing::text[])[1]);
                    finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', spelt, attribute.attname);
                END IF;
                IF attribute.expression IS NOT NULL THEN
                    finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', spelt, attribute.attname,
                                                     attribute.expression);
                END IF;
            END IF;
            -- Rows may be older than that, and were given a value by a statement that nobody kept.
            IF attribute.attnotnull THEN
                finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', spelt, attribute.attname);
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
        -- Sequences of its columns: those of serial ones are made before their defaults; all go on after the rows that there are.
        FOR sequence IN
            SELECT format('%I.%I', n.nspname, c.relname) AS spelt, d.deptype = 'a' AS is_serial, a.attname, format_type(q.seqtypid, NULL) AS type,
                   CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END AS generated,
                   CASE WHEN q.seqincrement > 0 THEN 'max' ELSE 'min' END AS last,
                   format('INCREMENT %s MINVALUE %s MAXVALUE %s START %s%s', q.seqincrement, q.seqmin, q.seqmax, q.seqstart,
                          CASE WHEN q.seqcycle THEN ' CYCLE' ELSE '' END) AS options
              FROM pg_depend d
              JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
              JOIN pg_sequence q ON q.seqrelid = c.oid
              JOIN pg_namespace n ON n.oid = c.relnamespace
              JOIN pg_attribute a ON a.attrelid = target AND a.attnum = d.refobjsubid
             WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = target AND d.deptype IN ('a', 'i')
             ORDER BY a.attnum
        LOOP
            IF sequence.is_serial THEN
                finishing := ARRAY[format('CREATE SEQUENCE %s AS %s %s OWNED BY %s.%I', sequence.spelt, sequence.type, sequence.options, spelt,
                                          sequence.attname)] || finishing;
            ELSE
                finishing := finishing || format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s %s)', spelt,
                                                 sequence.attname, sequence.generated, sequence.spelt, sequence.options);
            END IF;
            finishing := finishing || format('SELECT setval(%L, %s(%I)::int8) FROM %s HAVING %2$s(%3$I) IS NOT NULL', sequence.spelt, sequence.last,
                                             sequence.attname, spelt);
        END LOOP;
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
    IF class.relrowsecurity THEN
        guarding := guarding || format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', spelt);
    END IF;
    IF class.relforcerowsecurity THEN
        guarding := guarding || format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', spelt);
    END IF;
    FOR policy IN
        SELECT y.polname, y.polpermissive, pg_get_expr(y.polqual, target) AS qual, pg_get_expr(y.polwithcheck, target) AS with_check,
               CASE y.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END AS command,
               (SELECT string_agg(coalesce(quote_ident(r.rolname), 'PUBLIC'), ', ') FROM unnest(y.polroles) AS o (oid)
                  LEFT JOIN pg_roles r ON r.oid = o.oid) AS roles
          FROM pg_policy y WHERE y.polrelid = target ORDER BY y.polname
    LOOP
        guarding := guarding || (format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', policy.polname, spelt,
                                        CASE WHEN policy.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END, policy.command, policy.roles)
                                 || coalesce(' USING (' || policy.qual || ')', '')
                                 || coalesce(' WITH CHECK (' || policy.with_check || ')', ''));
    END LOOP;
    RETURN jsonb_build_object(
        'schema', class.nspname, 'name', class.relname, 'table', spelt,
        'owner', CASE WHEN NOT is_member THEN pg_get_userbyid(class.relowner) END,
        'is_partition', class.relispartition,
        'create', to_jsonb(creating), 'guard', to_jsonb(guarding), 'finish', to_jsonb(finishing),
        'columns', coalesce(to_jsonb(lanes.column_names(target)), '[]'), 'added', added,
        'grants', coalesce((
            SELECT jsonb_agg(jsonb_build_object('role', r.rolname, 'statement',
                                                format('GRANT %s%s ON %s TO %s%s', p.privilege_type, p.of_column, p.object,
                                                       coalesce(quote_ident(r.rolname), 'PUBLIC'),
                                                       CASE WHEN p.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)))
              FROM (SELECT '' AS of_column, spelt AS object, g.* FROM aclexplode(class.relacl) AS g
                    UNION ALL
                    SELECT format(' (%I)', a.attname), spelt, g.* FROM pg_attribute a, aclexplode(a.attacl) AS g
                     WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
                    UNION ALL
                    SELECT '', format('SEQUENCE %I.%I', n.nspname, c.relname), g.*
                      FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace,
                           aclexplode(c.relacl) AS g
                     WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = target
                       AND d.deptype IN ('a', 'i')) AS p
              LEFT JOIN pg_roles r ON r.oid = p.grantee
             WHERE p.grantee <> class.relowner AND (r.oid IS NOT NULL OR p.grantee = 0) AND NOT is_member), '[]'));
END
$$;

COMMENT ON FUNCTION lanes.table_definition(oid) IS
    'for lanes-gateway: a table as statements that create it again in an empty database';

REVOKE ALL ON FUNCTION lanes.append_logged(regclass, bytea, bytea[], bytea[], int4[], int4[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.table_definition(oid) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.definition_version(oid) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.column_names(oid) FROM PUBLIC;
REVOKE ALL ON FUNCTION lanes.column_types(oid) FROM PUBLIC;

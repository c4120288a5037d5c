//! The objects of the extension in a database as texts: what they are, and everything that a script decides about them.

use lanes_support::cluster::Cluster;
use std::collections::BTreeSet;

/// Queries for the parts of the catalogs. Each returns one text a row.
const QUERIES: [&str; 8] = [
    // Each member, its comment and its privileges.
    "SELECT pg_describe_object(d.classid, d.objid, 0) || ' is a member; ' || coalesce(c.description, '') \
       FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'lanes' \
       LEFT JOIN pg_description c ON c.classoid = d.classid AND c.objoid = d.objid AND c.objsubid = 0 \
      WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'",
    "SELECT pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '') FROM pg_proc p \
      WHERE p.pronamespace = 'lanes'::regnamespace AND p.prokind <> 'a'",
    "SELECT to_jsonb(a)::text FROM (SELECT a.aggfnoid::regprocedure::text, aggtransfn::text, aggfinalfn::text, aggcombinefn::text, \
            aggserialfn::text, aggdeserialfn::text, aggtranstype::regtype::text, aggtransspace, agginitval, aggsortop::regoperator::text, \
            p.proparallel, p.proacl::text FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid \
            WHERE p.pronamespace = 'lanes'::regnamespace) a",
    "SELECT c.oid::regclass || ' ' || c.relkind::text || coalesce(c.relacl::text, '') || coalesce(c.reloptions::text, '') || \
            coalesce(pg_get_viewdef(c.oid), '') || coalesce((SELECT amname FROM pg_am WHERE oid = c.relam), '') \
       FROM pg_class c WHERE c.relnamespace IN ('lanes'::regnamespace, 'metrics'::regnamespace) AND c.relkind <> 't'",
    "SELECT a.attrelid::regclass || '.' || a.attname || ' ' || a.attnum || format_type(a.atttypid, a.atttypmod) || a.attnotnull || \
            coalesce(pg_get_expr(d.adbin, d.adrelid), '') || coalesce(a.attacl::text, '') \
       FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind <> 't' \
       LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
      WHERE c.relnamespace = 'lanes'::regnamespace AND a.attnum > 0",
    "SELECT conrelid::regclass || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'lanes'::regnamespace AND conrelid <> 0 \
      UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
      WHERE c.relnamespace = 'lanes'::regnamespace AND NOT t.tgisinternal \
      UNION ALL SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
      WHERE c.relnamespace = 'lanes'::regnamespace",
    "SELECT 'dumped ' || t.oid::regclass || ' ' || t.condition \
       FROM pg_extension e, unnest(e.extconfig, e.extcondition) AS t (oid, condition) WHERE e.extname = 'lanes'",
    "SELECT 'initial privileges of ' || pg_describe_object(i.classoid, i.objoid, i.objsubid) || i.initprivs::text FROM pg_init_privs i \
       JOIN pg_depend d ON d.classid = i.classoid AND d.objid = i.objoid AND d.deptype = 'e' \
       JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'lanes'",
];

/// Returns everything about the extension's objects.
pub fn of(cluster: &Cluster, database: &str) -> BTreeSet<String> {
    let answers = QUERIES.iter().map(|query| {
        let rows = cluster.query(database, query).unwrap();
        assert!(!rows.is_empty(), "{query}");
        rows
    });
    answers.flatten().flatten().flatten().collect()
}

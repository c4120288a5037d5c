//! What PostgreSQL's own modules that watch and warm tables say of a lanes table: `pg_stat_statements`, `auto_explain`,
//! `pg_prewarm`.

use lanes_support::cluster::Cluster;

const TABLE: &str = "CREATE TABLE t (i int, b int) USING lanes WITH (order_by = 'i'); \
                     INSERT INTO t SELECT g, g % 1000 FROM generate_series(1, 200000) g; \
                     CREATE INDEX by_b ON t (b)";
const QUERY: &str = "SELECT sum(i) FROM t WHERE b % 2 = 0";

/// Starts a cluster that preloads these modules.
fn cluster(name: &str, modules: &str, settings: &[(&str, &str)]) -> Cluster {
    let mut builder = Cluster::builder(name)
        .sealed_by_hand()
        .setting("shared_preload_libraries", modules);
    for (setting, value) in settings {
        builder = builder.setting(setting, value);
    }
    let cluster = builder.start().unwrap();
    cluster.psql("postgres", "CREATE EXTENSION lanes").unwrap();
    cluster
}

/// Whether a query finds true.
fn is_so(cluster: &Cluster, query: &str) -> bool {
    cluster.scalar("postgres", query).unwrap() == "t"
}

#[test]
fn pg_stat_statements_counts_blocks_of_the_arena_rows_and_wal() {
    for order in ["lanes,pg_stat_statements", "pg_stat_statements,lanes"] {
        let cluster = cluster("stat_statements", order, &[]);
        let sql = |script: &str| cluster.psql("postgres", script).unwrap();
        sql("CREATE EXTENSION pg_stat_statements");
        sql(TABLE);
        for _ in 0..3 {
            sql(QUERY);
        }
        sql("UPDATE t SET b = b + 1 WHERE i <= 10");
        sql("SELECT lanes.seal('t')");
        let told = |condition: &str, of: &str| {
            is_so(
                &cluster,
                &format!("SELECT {condition} FROM pg_stat_statements WHERE query LIKE '{of}'"),
            )
        };
        let pages = "pg_relation_size('t') / 8192";
        let condition = format!(
            "calls = 3 AND rows = 3 AND shared_blks_hit + shared_blks_read BETWEEN {pages} AND 6 * {pages} + 60"
        );
        assert!(told(&condition, "SELECT sum%"), "{order}");
        assert!(
            told("rows = 10 AND wal_records >= 10", "UPDATE%"),
            "{order}"
        );
        assert!(
            told("rows = 200000 AND wal_bytes > 200000", "INSERT%"),
            "{order}"
        );
    }
}

#[test]
fn auto_explain_logs_plans_of_lanes_tables_with_their_counters() {
    let cluster = cluster(
        "auto_explain",
        "lanes,auto_explain",
        &[
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_buffers", "on"),
            ("auto_explain.log_wal", "on"),
            ("auto_explain.log_nested_statements", "on"),
        ],
    );
    cluster.psql("postgres", TABLE).unwrap();
    cluster.psql("postgres", QUERY).unwrap();
    let in_a_function =
        "DO 'BEGIN DELETE FROM t WHERE i = 7; PERFORM sum(b) FROM t WHERE i % 3 = 1; END'";
    cluster.psql("postgres", in_a_function).unwrap();
    let log = std::fs::read_to_string(cluster.log()).unwrap();
    let plan_of = |query: &str| {
        let start = log.rfind(&format!("Query Text: {query}"));
        let plan = &log[start.unwrap_or_else(|| panic!("{query} is not logged"))..];
        plan.split("duration:").next().unwrap()
    };
    let plan = plan_of(QUERY);
    assert!(plan.contains("LanesAggregate"), "{plan}");
    assert!(plan.contains("Buffers: shared hit="), "{plan}");
    assert!(plan_of("DELETE FROM t").contains("WAL: records="));
    assert!(plan_of("SELECT sum(b)").contains("LanesAggregate"));
}

#[test]
fn pg_prewarm_reads_the_pages_of_a_lanes_table_and_of_its_indexes() {
    let cluster = cluster("prewarm", "lanes,pg_prewarm", &[]);
    let sql = |script: &str| cluster.psql("postgres", script).unwrap();
    sql("CREATE EXTENSION pg_prewarm; CREATE EXTENSION pg_buffercache");
    sql(TABLE);
    let digest = "SELECT count(*) || ' ' || sum(i) || ' ' || sum(b) FROM t";
    let before = sql(digest);
    for step in [
        "SELECT 1",
        "SELECT lanes.seal('t')",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 5000) g",
        "VACUUM t",
    ] {
        sql(step);
        for name in ["t", "by_b"] {
            for mode in ["buffer", "read", "prefetch"] {
                let query = format!(
                    "SELECT pg_prewarm('{name}', '{mode}') = pg_relation_size('{name}') / 8192"
                );
                assert!(is_so(&cluster, &query), "{step}, {name}, {mode}");
            }
        }
        let cached = "SELECT count(*) = pg_relation_size('t') / 8192 FROM pg_buffercache \
                      WHERE relfilenode = pg_relation_filenode('t') AND relforknumber = 0";
        sql("SELECT pg_prewarm('t')");
        assert!(is_so(&cluster, cached), "{step}");
    }
    sql("DELETE FROM t WHERE i <= 5000 AND b = i");
    sql("INSERT INTO t SELECT g, g % 1000 FROM generate_series(1, 999) g");
    assert_eq!(sql(digest), before);
    assert!(is_so(&cluster, "SELECT count(*) = 0 FROM lanes.check('t')"));
}

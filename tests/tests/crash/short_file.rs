//! A file that is shorter than its metapage says. Extending a file is not WAL-logged, so this
//! occurs on a promoted standby, in a restored backup, or after a power failure. Blocks past the
//! file's end must not be allocated twice.

use lanes_support::cluster::{Cluster, Stop};

const BLOCK: u64 = 8192;

#[test]
fn free_blocks_past_the_end_are_never_allocated_twice() {
    let mut cluster = Cluster::builder("crash_short").start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    for sql in [
        "CREATE EXTENSION IF NOT EXISTS lanes",
        "CREATE TABLE t (n int8) USING lanes",
        "INSERT INTO t SELECT generate_series(1, 10000)",
        "BEGIN; INSERT INTO t SELECT generate_series(1, 200000); ROLLBACK",
        "VACUUM (TRUNCATE off) t",
        "VACUUM (TRUNCATE off) t",
    ] {
        client.batch_execute(sql).unwrap();
    }
    let path: String = client
        .query_one("SELECT pg_relation_filepath('t')", &[])
        .unwrap()
        .get(0);
    let blocks: i64 = client
        .query_one("SELECT pg_relation_size('t') / 8192", &[])
        .unwrap()
        .get(0);
    drop(client);
    cluster.stop(Stop::Fast).unwrap();
    let file = std::fs::File::options()
        .write(true)
        .open(cluster.data().join(path))
        .unwrap();
    // The aborted load has allocated the end of the file, most of which is cut off.
    let kept = u64::try_from(blocks).unwrap() / 3;
    file.set_len(kept * BLOCK).unwrap();
    drop(file);
    cluster.start().unwrap();

    let mut client = cluster.connect("postgres").unwrap();
    // First more than the remaining free blocks, then fewer.
    for (first, last) in [
        (10_001, 90_000),
        (90_001, 93_000),
        (93_001, 123_000),
        (123_001, 138_000),
    ] {
        client
            .batch_execute(&format!(
                "INSERT INTO t SELECT generate_series({first}, {last})"
            ))
            .unwrap();
    }
    drop(client);
    // The restart makes the server read the pages instead of memory.
    cluster.restart().unwrap();
    assert_eq!(
        cluster
            .scalar(
                "postgres",
                "SELECT concat_ws(' ', count(*), count(DISTINCT n), min(n), max(n)) FROM t"
            )
            .unwrap(),
        "138000 138000 1 138000"
    );
}

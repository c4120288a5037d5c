//! `lanes.append` into tables with indexes, beside heap tables with the same rows and indexes: index scans find the
//! same rows, constraints refuse the same batches, and `lanes.check` finds every entry.
//!
//! `LANES_SEED` replays a run; `LANES_ROUNDS` sets the number of pairs of tables.

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::{Random, seeded};
use lanes_wire::{ColumnSource, ItemsSource, ValuesSource};
use postgres::Client;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// The numbers of pairs of tables.
const ROUNDS: Budget = Budget {
    short: 12,
    long: 60,
};
/// The most rows of a batch. Some batches are two runs.
const BATCH_ROWS_MAX: usize = 70_000;

/// Definitions of an index, each after the name of the table. Those of the second list may refuse a batch.
const INDEXES: [&str; 12] = [
    "INDEX ON {} (id)",
    "INDEX ON {} (id DESC NULLS LAST, v)",
    "INDEX ON {} (name, id)",
    "INDEX ON {} (v)",
    "INDEX ON {} (id) INCLUDE (name)",
    "INDEX ON {} (lower(name), id)",
    "INDEX ON {} (id) WHERE v > 50 AND name IS NOT NULL",
    "INDEX ON {} (name COLLATE \"C\" text_pattern_ops)",
    "INDEX ON {} USING hash (id)",
    "INDEX ON {} USING brin (id)",
    "INDEX ON {} USING gin (to_tsvector('simple', coalesce(name, '')))",
    "INDEX ON {} USING gist (point(v, id))",
];
const CONSTRAINTS: [&str; 5] = [
    "UNIQUE INDEX ON {} (uq)",
    "UNIQUE INDEX ON {} (id, uq) NULLS NOT DISTINCT",
    "UNIQUE INDEX ON {} (uq) WHERE v > 90",
    "UNIQUE INDEX ON {} (abs(uq))",
    "EXCLUSION",
];

/// Columns of rows. `None` is NULL.
#[derive(Debug, Default)]
struct Rows {
    ids: Vec<i32>,
    has_id: Vec<bool>,
    keys: Vec<i64>,
    values: Vec<f64>,
    names: Vec<Option<String>>,
}

impl Rows {
    /// Random rows. The keys are unique within and across batches, unless `repeats`.
    fn random(random: &mut Random, count: usize, first_key: i64, repeats: bool) -> Rows {
        let mut rows = Rows::default();
        let ids = *[3, 1_000, 1_000_000].choose(random).unwrap();
        let ascends = random.random_bool(0.3);
        for row in 0..count {
            let id = random.random_range(-ids..ids);
            rows.ids.push(if ascends { row as i32 } else { id });
            rows.has_id.push(random.random_ratio(19, 20));
            rows.keys.push(first_key + row as i64);
            rows.values.push(f64::from(random.random_range(0..100)));
            let name = random.random_range(0..500);
            rows.names.push((name > 20).then(|| format!("Name-{name}")));
        }
        if repeats && count > 1 {
            let (from, to) = (random.random_range(0..count), random.random_range(0..count));
            rows.keys[to] = rows.keys[from];
        }
        rows
    }

    /// The rows as a batch of the wire format.
    fn batch(&self) -> Vec<u8> {
        let (has_id, has_name) = (
            bitmap(self.has_id.iter().copied()),
            bitmap(self.names.iter().map(Option::is_some)),
        );
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for name in &self.names {
            bytes.extend(name.iter().flat_map(|name| name.bytes()));
            ends.push(bytes.len() as u32);
        }
        let names = ItemsSource::Plain {
            ends: &ends,
            bytes: &bytes,
        };
        let columns = [
            ("id", ValuesSource::Int32(&self.ids), Some(&has_id[..])),
            ("uq", ValuesSource::Int64(&self.keys), None),
            ("v", ValuesSource::Float64(&self.values), None),
            ("name", ValuesSource::Text(names), Some(&has_name[..])),
        ]
        .map(|(name, values, validity)| ColumnSource {
            name,
            values,
            validity,
        });
        let mut batch = Vec::new();
        lanes_wire::encode(self.ids.len(), &columns, &mut batch).unwrap();
        batch
    }

    /// Inserts the rows into the heap table.
    fn insert(&self, client: &mut Client) -> Result<u64, postgres::Error> {
        let ids = self.ids.iter().zip(&self.has_id);
        let ids: Vec<Option<i32>> = ids.map(|(id, has_id)| has_id.then_some(*id)).collect();
        client.execute(
            "INSERT INTO h SELECT * FROM unnest($1::int4[], $2::int8[], $3::float8[], $4::text[])",
            &[&ids, &self.keys, &self.values, &self.names],
        )
    }
}

/// One bit a row.
fn bitmap(rows: impl Iterator<Item = bool>) -> Vec<u8> {
    let rows: Vec<bool> = rows.collect();
    let byte = |rows: &[bool]| {
        let bits = rows.iter().enumerate();
        bits.fold(0, |byte, (at, is_set)| byte | u8::from(*is_set) << at)
    };
    rows.chunks(8).map(byte).collect()
}

/// Creates two tables with the same indexes. Returns their definitions, for messages.
fn create(client: &mut Client, random: &mut Random) -> String {
    let mut indexes: Vec<&str> = INDEXES.sample(random, 3).copied().collect();
    if random.random_bool(0.5) {
        indexes.push(CONSTRAINTS.choose(random).unwrap());
    }
    for (table, method) in [("l", "lanes"), ("h", "heap")] {
        let columns = "(id int4, uq int8, v float8, name text)";
        client
            .batch_execute(&format!(
                "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} {columns} USING {method}"
            ))
            .unwrap();
        for index in &indexes {
            let statement = match *index {
                "EXCLUSION" => format!("ALTER TABLE {table} ADD EXCLUDE USING hash (uq WITH =)"),
                index => format!("CREATE {}", index.replace("{}", table)),
            };
            client.batch_execute(&statement).unwrap();
        }
    }
    indexes.join("; ")
}

/// What a table says to a batch: the number of rows, or SQLSTATE and constraint.
fn outcome(result: Result<u64, postgres::Error>) -> Result<u64, (String, Option<String>)> {
    result.map_err(|error| {
        let error = error.as_db_error().unwrap();
        // The name begins with the table's.
        let constraint = error.constraint().map(|name| name[1..].to_owned());
        (error.code().code().to_owned(), constraint)
    })
}

/// A condition that an index may answer.
fn condition(random: &mut Random) -> String {
    let (id, name) = (random.random_range(-50..50), random.random_range(0..520));
    match random.random_range(0..9) {
        0 => format!("id = {id}"),
        1 => format!("id BETWEEN {id} AND {id} + 20"),
        2 => format!("id > {id} AND v = 7"),
        3 => format!("name = 'Name-{name}'"),
        4 => format!("lower(name) = 'name-{name}' AND id < {id}"),
        5 => format!("id < {id} AND v > 50 AND name IS NOT NULL"),
        6 => format!("to_tsvector('simple', coalesce(name, '')) @@ 'name-{name}'::tsquery"),
        7 => "id IS NULL".to_owned(),
        _ => format!("v = {} AND uq > 5", name % 100),
    }
}

#[test]
fn index_scans_of_appended_rows_agree_with_heap() {
    let cluster = Cluster::builder("append_twin")
        .sealed_by_hand()
        .start()
        .unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    client
        .batch_execute(
            "CREATE EXTENSION lanes; SET lanes.vectorize = off; SET enable_seqscan = off",
        )
        .unwrap();
    let (mut random, seed) = seeded("append_twin");
    for round in 0..ROUNDS.rounds() {
        let indexes = create(&mut client, &mut random);
        let context = format!("seed {seed}, round {round}, {indexes}");
        let mut first_key = 0;
        for _ in 0..random.random_range(1..4) {
            let count = match random.random_ratio(1, 6) {
                true => BATCH_ROWS_MAX,
                false => random.random_range(1..3_000),
            };
            let repeats = random.random_bool(0.3);
            let rows = Rows::random(&mut random, count, first_key, repeats);
            let batch = rows.batch();
            let appended = client
                .query_one("SELECT lanes.append('l', $1)", &[&batch])
                .map(|row| row.get::<_, i64>(0) as u64);
            let (appended, inserted) = (outcome(appended), outcome(rows.insert(&mut client)));
            assert_eq!(appended, inserted, "{context}");
            first_key += count as i64;
            if random.random_bool(0.3) {
                client.batch_execute("SELECT lanes.seal('l')").unwrap();
            }
        }
        for _ in 0..20 {
            let condition = condition(&mut random);
            let mut found = ["l", "h"].into_iter().map(|table| {
                let sql = format!(
                    "SELECT count(*), sum(uq)::int8, min(id), max(name) FROM {table} WHERE {condition}"
                );
                let row = client.query_one(&sql, &[]).unwrap();
                let sum: Option<i64> = row.get(1);
                (row.get::<_, i64>(0), sum, row.get::<_, Option<i32>>(2), row.get::<_, Option<String>>(3))
            });
            assert_eq!(found.next(), found.next(), "{context}, {condition}");
        }
        let problems = client.query("SELECT * FROM lanes.check('l')", &[]).unwrap();
        assert!(problems.is_empty(), "{context}: {problems:?}");
    }
    // Random rounds may refuse no batch at all, so one batch has to be refused.
    client
        .batch_execute(
            "TRUNCATE l; TRUNCATE h; CREATE UNIQUE INDEX ON l (uq); CREATE UNIQUE INDEX ON h (uq)",
        )
        .unwrap();
    let mut rows = Rows::random(&mut random, 100, 0, false);
    rows.keys[50] = rows.keys[7];
    let batch = rows.batch();
    let appended = client.execute("SELECT lanes.append('l', $1)", &[&batch]);
    let appended = outcome(appended);
    assert!(appended.is_err(), "seed {seed}");
    assert_eq!(appended, outcome(rows.insert(&mut client)), "seed {seed}");
}

#[test]
fn a_statement_is_cancelled_while_it_makes_index_entries() {
    let cluster = Cluster::builder("append_cancelled").start().unwrap();
    let mut client = cluster.connect("postgres").unwrap();
    // The expression of the index cancels the statement, right before the next look for interrupts between two rows.
    client
        .batch_execute(
            "CREATE EXTENSION lanes;
             CREATE TABLE l (id int4, uq int8, v float8, name text) USING lanes;
             CREATE FUNCTION cancelling(int8) RETURNS bool IMMUTABLE
                 RETURN $1 <> 1024 OR pg_cancel_backend(pg_backend_pid());
             CREATE INDEX ON l (cancelling(uq))",
        )
        .unwrap();
    let (mut random, seed) = seeded("append_cancelled");
    let rows = Rows::random(&mut random, 5_000, 1, false);
    let cancelled = client.query_one("SELECT lanes.append('l', $1)", &[&rows.batch()]);
    let error = cancelled.unwrap_err();
    assert_eq!(
        error.code(),
        Some(&postgres::error::SqlState::QUERY_CANCELED),
        "seed {seed}: {error}"
    );
    // The session goes on, and nothing is left of the rows.
    let left: i64 = client
        .query_one("SELECT count(*) FROM l", &[])
        .unwrap()
        .get(0);
    assert_eq!(left, 0);
    let problems = client.query("SELECT * FROM lanes.check('l')", &[]).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

//! ASOF joins compared with an oracle: random small tables and random joins, on lanes and on heap
//! tables. The oracle is a quadratic query without the marker, which keeps a candidate only if
//! there is no better one.
//!
//! The tables contain the difficult cases: equal times, NULLs, both infinities, NULL keys, late
//! rows, deleted rows. The column `id` of the right side is the order in which its rows arrived.
//! Aggregates over the same joins have to agree too, and aggregates over time windows have to agree
//! with heap tables.
//!
//! `LANES_SEED` replays a run; `LANES_ROUNDS` sets the number of pairs of tables.

use lanes_support::budget::Budget;
use lanes_support::cluster::Cluster;
use lanes_support::seed::{Random, seeded};
use postgres::{Client, SimpleQueryMessage};
use rand::RngExt;
use rand::seq::IndexedRandom;

/// The numbers of pairs of tables.
const ROUNDS: Budget = Budget {
    short: 12,
    long: 40,
};
/// The number of joins of each pair.
const JOINS: u32 = 12;

/// A type of times: the notation of a small number, and the tolerance that is added.
#[derive(Debug, Clone, Copy)]
struct Times {
    name: &'static str,
    /// A literal, in which `{}` is the number.
    literal: &'static str,
    infinite: bool,
    /// The tolerance as a literal, and in the form for the oracle.
    tolerance: &'static str,
    /// A number that increases with the time `{}`.
    measure: &'static str,
}

const TIMES: [Times; 8] = [
    Times {
        name: "timestamptz",
        literal: "timestamptz '2024-02-28 23:59:58Z' + {} * interval '1 s'",
        infinite: true,
        tolerance: "{} * interval '1 s'",
        measure: "extract(epoch from {})",
    },
    Times {
        name: "timestamp",
        literal: "timestamp '2024-02-28 23:59:58' + {} * interval '1 us'",
        infinite: true,
        tolerance: "{} * interval '1 us'",
        measure: "extract(epoch from {})",
    },
    Times {
        name: "date",
        literal: "date '2024-02-28' + {}",
        infinite: true,
        tolerance: "{}",
        measure: "extract(epoch from {}::timestamp)",
    },
    Times {
        name: "int2",
        literal: "{}",
        infinite: false,
        tolerance: "{}",
        measure: "{}::numeric",
    },
    Times {
        name: "int4",
        literal: "{}",
        infinite: false,
        tolerance: "{}",
        measure: "{}::numeric",
    },
    Times {
        name: "int8",
        literal: "{} * 1000000000000",
        infinite: false,
        tolerance: "{} * 1000000000000",
        measure: "{}::numeric",
    },
    Times {
        name: "float8",
        literal: "{} * 0.5::float8",
        infinite: true,
        tolerance: "{} * 0.5",
        measure: "{}::numeric",
    },
    Times {
        name: "numeric",
        literal: "{} * 0.25",
        infinite: true,
        tolerance: "{} * 0.25",
        measure: "{}::numeric",
    },
];

fn fill(pattern: &str, with: &str) -> String {
    pattern.replace("{}", with)
}

/// Returns a time, rarely NULL or infinite. The domain is small, so that equal times are common.
fn time(random: &mut Random, times: Times) -> String {
    match random.random_range(0..14) {
        0 => "NULL".to_owned(),
        1 if times.infinite => "'infinity'".to_owned(),
        2 if times.infinite => "'-infinity'".to_owned(),
        _ => fill(times.literal, &random.random_range(-6..7).to_string()),
    }
}

fn key(random: &mut Random) -> String {
    match random.random_range(0..7) {
        0 => "NULL".to_owned(),
        number => format!("'K{}'", number % 3),
    }
}

/// Returns statements that fill both sides, the right side in several statements and with deletes.
fn script(random: &mut Random, left: Times, right: Times) -> String {
    let mut script = format!(
        "DROP TABLE IF EXISTS t, q; CREATE TABLE t (id int, k text, n int, ts {}); CREATE TABLE q (id int, k text, n int, ts {}, v int, seq int);",
        left.name, right.name
    );
    for id in 0..random.random_range(0..12) {
        script.push_str(&format!(
            "INSERT INTO t VALUES ({id}, {}, {}, {});",
            key(random),
            random.random_range(0..3),
            time(random, left)
        ));
    }
    let mut id = 0;
    for _ in 0..random.random_range(0..5) {
        let rows: Vec<String> = (0..random.random_range(1..14))
            .map(|_| {
                id += 1;
                let seq = ["NULL", "1", "2", "3"].choose(random).unwrap().to_string();
                format!(
                    "({id}, {}, {}, {}, {}, {seq})",
                    key(random),
                    random.random_range(0..3),
                    time(random, right),
                    random.random_range(0..10),
                )
            })
            .collect();
        script.push_str(&format!("INSERT INTO q VALUES {};", rows.join(", ")));
        if random.random_ratio(1, 3) {
            script.push_str(&format!(
                "DELETE FROM q WHERE v = {};",
                random.random_range(0..10)
            ));
        }
    }
    script
}

/// A query with the marker, and its oracle.
struct Join {
    marked: String,
    oracle: String,
}

/// Aggregates of joined rows, and their groups.
const GROUPS: [(&str, &str); 3] = [
    ("true", ""),
    ("t.n", "GROUP BY t.n ORDER BY t.n"),
    ("t.k", "GROUP BY t.k ORDER BY t.k"),
];

/// Returns an aggregate over the rows of a time window. The oracle is a heap table.
fn window(random: &mut Random, left: Times, right: Times) -> Join {
    let step = |random: &mut Random| fill(left.tolerance, &random.random_range(-2..6).to_string());
    let bounds = match random.random_range(0..if left.name == right.name { 4 } else { 2 }) {
        0 => "q.ts <= t.ts".to_owned(),
        1 => "q.ts > t.ts".to_owned(),
        2 => format!(
            "q.ts BETWEEN t.ts - {} AND t.ts + {}",
            step(random),
            step(random)
        ),
        _ => format!("q.ts > t.ts - {} AND q.ts < t.ts", step(random)),
    };
    let keys = KEYS.choose(random).unwrap().replace("{q}", "q");
    let residual = ["true", "q.v < 6"].choose(random).unwrap();
    let (kind, rest) = [("LEFT", "ON true"), ("CROSS", "")].choose(random).unwrap();
    let filter = ["true", "w.n > 1", "w.s < 20 OR w.s IS NULL"]
        .choose(random)
        .unwrap();
    let (group, by) = GROUPS.choose(random).unwrap();
    let query = format!(
        "SELECT {group}, count(*), sum(w.n), count(w.c), sum(w.c), sum(w.s), min(w.low), max(w.high), round(sum(w.a)::numeric, 9) \
         FROM t {kind} JOIN LATERAL (SELECT count(*) AS n, count(seq) AS c, sum(v) AS s, min(v) AS low, max(seq) AS high, \
         avg(v::float8) AS a FROM q WHERE {keys} AND {residual} AND {bounds}) w {rest} WHERE {filter} {by}"
    );
    Join {
        marked: query.clone(),
        oracle: query,
    }
}

const KEYS: [&str; 6] = [
    "{q}.k = t.k",
    "t.k = {q}.k AND {q}.n = t.n",
    "{q}.k IS NOT DISTINCT FROM t.k",
    "t.n = {q}.n",
    "{q}.n + 1 = t.n + 1 AND {q}.k = t.k",
    "true",
];
const RESIDUALS: [&str; 7] = [
    "true",
    "true",
    "true",
    "{q}.v < 6",
    "{q}.v > t.id",
    "t.id % 3 > 0",
    "({q}.k = t.k OR {q}.v + t.n > 6)",
];

/// Returns the rows of a join, and aggregates of them.
fn joins(random: &mut Random, left: Times, right: Times) -> [Join; 2] {
    let mut candidate = vec![
        KEYS.choose(random).unwrap().to_string(),
        RESIDUALS.choose(random).unwrap().to_string(),
    ];
    let plain = candidate.join(" AND ");
    let left_time = match random.random_range(0..5) {
        0 => format!("t.ts + {}", fill(left.tolerance, "1")),
        _ => "t.ts".to_owned(),
    };
    // A tolerance of one type applies to the other side only if the types are equal.
    let reach = (left.name == right.name && random.random_bool(0.5))
        .then(|| fill(left.tolerance, &random.random_range(0..5).to_string()));
    let tie = random.random_ratio(1, 3);
    let mut extra = String::new();
    if let Some(reach) = &reach {
        extra.push_str(&format!(", tolerance => {reach}"));
    }
    if tie {
        extra.push_str(", tie => q.seq");
    }
    let within = |backward: bool| match &reach {
        Some(reach) if backward => format!(" AND {{q}}.ts >= {left_time} - ({reach})"),
        Some(reach) => format!(" AND {{q}}.ts <= {left_time} + ({reach})"),
        None => String::new(),
    };
    let last = if tie {
        "(o.seq > q.seq OR o.seq IS NOT NULL AND q.seq IS NULL OR o.seq IS NOT DISTINCT FROM q.seq AND o.id > q.id)"
    } else {
        "o.id > q.id"
    };
    let first = if tie {
        "(o.seq < q.seq OR o.seq IS NOT NULL AND q.seq IS NULL OR o.seq IS NOT DISTINCT FROM q.seq AND o.id < q.id)"
    } else {
        "o.id < q.id"
    };
    let measurable = left.name == right.name;
    let (marker, better) = match random.random_range(0..if measurable { 6 } else { 4 }) {
        which @ 0..4 => {
            let (operator, mirrored) = [("<=", ">="), ("<", ">"), (">=", "<="), (">", "<")][which];
            let backward = which < 2;
            candidate.push(format!(
                "{{q}}.ts {operator} {left_time}{}",
                within(backward)
            ));
            let condition = if random.random_bool(0.5) {
                format!("q.ts {operator} {left_time}")
            } else {
                format!("{left_time} {mirrored} q.ts")
            };
            let better = if backward {
                format!("(o.ts > q.ts OR o.ts = q.ts AND {last})")
            } else {
                format!("(o.ts < q.ts OR o.ts = q.ts AND {first})")
            };
            (format!("lanes.asof({condition}{extra})"), better)
        }
        _ => {
            candidate.push(format!(
                "({{q}}.ts <= {left_time}{} OR {{q}}.ts > {left_time}{})",
                within(true),
                within(false)
            ));
            let measure = |side: &str| fill(left.measure, side);
            let left_measure = measure(&format!("({left_time})"));
            let distance = |side: &str| {
                format!(
                    "(CASE WHEN {side}.ts = {left_time} THEN 0 ELSE abs({} - {left_measure}) END)",
                    measure(&format!("({side}.ts)")),
                )
            };
            let (of_o, of_q) = (distance("o"), distance("q"));
            // A candidate of one side is better if it is later in the order, so that the last one
            // is closest to infinity. Otherwise the distance decides.
            let better = format!(
                "CASE WHEN o.ts <= {left_time} AND q.ts <= {left_time} THEN o.ts > q.ts OR o.ts = q.ts AND {last} \
                 WHEN o.ts <= {left_time} THEN {of_o} <= {of_q} WHEN q.ts <= {left_time} THEN {of_o} < {of_q} \
                 ELSE o.ts < q.ts OR o.ts = q.ts AND {first} END"
            );
            let operands = if random.random_bool(0.5) {
                format!("q.ts, {left_time}")
            } else {
                format!("{left_time}, q.ts")
            };
            (format!("lanes.asof_nearest({operands}{extra})"), better)
        }
    };
    let kind = ["JOIN", "LEFT JOIN"].choose(random).unwrap();
    let filter = ["true", "true", "q.v < 8", "q.id IS NULL"]
        .choose(random)
        .unwrap();
    let candidate = candidate.join(" AND ");
    let (of_q, of_o) = (candidate.replace("{q}", "q"), candidate.replace("{q}", "o"));
    let columns = ["q.k, q.n, q.ts, q.v", "q.seq, q.ts", "q"]
        .choose(random)
        .unwrap();
    let (group, by) = GROUPS.choose(random).unwrap();
    let marked = format!(
        "FROM t {kind} q ON {} AND {marker} WHERE {filter}",
        plain.replace("{q}", "q")
    );
    let oracle = format!(
        "FROM t {kind} q ON {of_q} AND NOT EXISTS (SELECT FROM q o WHERE {of_o} AND {better}) WHERE {filter}"
    );
    let of_rows = |from: &str| format!("SELECT t.id, q.id, {columns} {from} ORDER BY t.id");
    let aggregates =
        "count(*), count(q.id), sum(q.id), sum(q.v), min(q.seq), max(q.v - t.id), max(q.ts)";
    let of_groups = |from: &str| format!("SELECT {group}, {aggregates} {from} {by}");
    [
        Join {
            marked: of_rows(&marked),
            oracle: of_rows(&oracle),
        },
        Join {
            marked: of_groups(&marked),
            oracle: of_groups(&oracle),
        },
    ]
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let messages = client
        .simple_query(sql)
        .unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
    messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let fields: Vec<&str> = (0..row.len())
                    .map(|column| row.get(column).unwrap_or("<NULL>"))
                    .collect();
                Some(fields.join("|"))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn asof_joins_agree_with_the_quadratic_oracle() {
    let cluster = Cluster::builder("asof").start().unwrap();
    cluster.psql("postgres", "CREATE EXTENSION lanes").unwrap();
    let (mut random, seed) = seeded("asof");
    let rounds = ROUNDS.rounds();
    let mut clients = ["lanes", "heap"].map(|method| {
        let mut client = cluster.connect("postgres").unwrap();
        client
            .batch_execute(&format!(
                "CREATE SCHEMA on_{method}; SET search_path = on_{method}; SET default_table_access_method = {method}; \
                 SET client_min_messages = error; SET timezone = 'UTC'; SET jit = off"
            ))
            .unwrap();
        client
    });
    let (mut matches, mut accelerated, mut vectorised) = (0, 0, 0);
    for round in 0..rounds {
        let left = *TIMES.choose(&mut random).unwrap();
        // Some pairs of different types can be compared.
        let right = match (left.name, random.random_range(0..3)) {
            ("timestamptz" | "timestamp" | "date", 0) => TIMES[random.random_range(0..3)],
            ("int2" | "int4" | "int8", 0) => TIMES[random.random_range(3..6)],
            _ => left,
        };
        let script = script(&mut random, left, right);
        for client in &mut clients {
            client.batch_execute(&script).unwrap();
        }
        if random.random_bool(0.5) {
            clients[1]
                .batch_execute("CREATE INDEX ON q (k, ts); SET enable_seqscan = off")
                .unwrap();
        } else {
            clients[1].batch_execute("SET enable_seqscan = on").unwrap();
        }
        let joined = (0..JOINS).flat_map(|_| {
            let [rows, aggregates] = joins(&mut random, left, right);
            [rows, aggregates, window(&mut random, left, right)]
        });
        for join in joined.collect::<Vec<_>>() {
            let expected = rows(&mut clients[1], &join.oracle);
            matches += expected.len();
            for (client, method, settings) in [
                (1, "heap", "SET lanes.enable_asof = on"),
                (
                    0,
                    "lanes",
                    "SET lanes.enable_asof = off; SET enable_nestloop = on",
                ),
                (
                    0,
                    "lanes",
                    "SET lanes.enable_asof = on; SET enable_nestloop = on",
                ),
                // The tables are small, so without this setting the planner would not choose the
                // accelerated join.
                (
                    0,
                    "lanes",
                    "SET lanes.enable_asof = on; SET enable_nestloop = off",
                ),
            ] {
                let client = &mut clients[client];
                client.batch_execute(settings).unwrap();
                let found = rows(client, &join.marked);
                assert_eq!(
                    found, expected,
                    "on {method}, {settings}, round {round}, seed {seed}\n{script}\n{};\n{};",
                    join.marked, join.oracle
                );
            }
            let plan = rows(&mut clients[0], &format!("EXPLAIN {}", join.marked));
            accelerated += u32::from(plan.iter().any(|line| line.contains("LanesAsofJoin")));
            vectorised += u32::from(plan.iter().any(|line| line.contains("Time Join")));
        }
    }
    println!(
        "asof: {rounds} pairs of tables, {JOINS} joins each, {matches} rows agree, {accelerated} joins were accelerated, {vectorised} of vectors (seed {seed})"
    );
    assert!(
        rounds < 10 || matches > 100,
        "the tables hold too few matches to prove anything"
    );
}

//! The planning time that the extension adds to a query without a lanes table. The same query is
//! planned in turns in a cluster with the extension and in stock PostgreSQL; EXPLAIN reports the
//! time in microseconds.

use crate::sql::measurement::{Kind, Measurement, Unit};
use crate::sql::postgres_run::{explained, first_line};
use crate::statistics::Times;
use lanes_support::cluster::Cluster;
use lanes_support::error::Result;
use postgres::Client;

/// The row's name.
pub const ROW: &str = "planning";
/// The greatest planning time that the extension may add, in microseconds.
pub const ADDED_MICROSECONDS_MAX: f64 = 5.0;
const ROUNDS: usize = 3000;
const WARM_UP: usize = 300;

const TABLES: &str = "
    CREATE SCHEMA planning; SET search_path = planning;
    CREATE TABLE customers (id int4 PRIMARY KEY, name text) USING heap;
    CREATE TABLE orders (id int4 PRIMARY KEY, customer int4, total float8) USING heap;
    CREATE INDEX ON orders (customer);
    INSERT INTO customers SELECT i, 'c' || i FROM generate_series(1, 1000) i;
    INSERT INTO orders SELECT i, i % 1000, i FROM generate_series(1, 10000) i;
    ANALYZE customers, orders";
const QUERY: &str = "
    EXPLAIN (SUMMARY) SELECT c.name, sum(o.total) FROM customers c JOIN orders o ON o.customer = c.id WHERE c.id < 10 GROUP BY c.name";

/// Measures the planning times of both and their difference. A failure is recorded as the
/// measurement of the difference.
pub fn measure(with_extension: &Cluster, database: &str) -> Vec<Measurement> {
    match in_turns(with_extension, database) {
        Ok((with, stock)) => {
            let difference = with.median() - stock.median();
            let line = |system: &str, kind, times| {
                let mut line = Measurement::new(ROW, system, kind, times);
                line.unit = Unit::Microseconds;
                line
            };
            let mut added = line(
                "lanes, added",
                Kind::Ours,
                Times::new(vec![difference]).ok_or_else(String::new),
            );
            added.notes.push("difference of the medians".to_owned());
            vec![
                line("stock PostgreSQL", Kind::Peer, Ok(stock)),
                line("with the extension", Kind::Peer, Ok(with)),
                added,
            ]
        }
        Err(error) => vec![Measurement::new(
            ROW,
            "lanes, added",
            Kind::Ours,
            Err(first_line(&error.to_string())),
        )],
    }
}

fn in_turns(with_extension: &Cluster, database: &str) -> Result<(Times, Times)> {
    let stock = Cluster::builder("bench_stock")
        .without_extension()
        .start()?;
    let mut with = prepared(with_extension.connect(database)?)?;
    let mut without = prepared(stock.connect("postgres")?)?;
    let (mut with_times, mut without_times) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        for (client, times) in [
            (&mut with, &mut with_times),
            (&mut without, &mut without_times),
        ] {
            let milliseconds = explained(client, QUERY, "Planning Time: ")?;
            if round >= WARM_UP {
                times.push(milliseconds * 1e3);
            }
        }
    }
    with.batch_execute("DROP SCHEMA planning CASCADE")?;
    let both = Times::new(with_times).zip(Times::new(without_times));
    both.ok_or_else(|| lanes_support::error::Error::Other("no executions".to_owned()))
}

fn prepared(mut client: Client) -> Result<Client> {
    client.batch_execute(TABLES)?;
    Ok(client)
}

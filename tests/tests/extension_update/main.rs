//! `ALTER EXTENSION lanes UPDATE`: a database that was made by an older version has the same catalogs afterwards as a
//! new one, and its data.
//!
//! The older versions are those of `sql/upgrade/released`, and one that exists only here: the present SQL without one
//! function, which its upgrade script adds. The scripts are in an installation of their own, so that nobody else finds
//! them.

mod catalogs;

use lanes_support::cluster::Cluster;
use lanes_support::installation::Postgres;
use lanes_support::place;
use lanes_support::private_installation::PrivateInstallation;

const CURRENT: &str = env!("CARGO_PKG_VERSION");
/// The version that exists only here.
const OLDER: &str = "0.0.0";
/// Where the function that it lacks begins and ends in the script.
const FUNCTION: (&str, &str) = ("CREATE FUNCTION lanes.seal(", "-- sql/remote.sql");

/// Returns the versions with a frozen script, and their scripts.
fn released() -> Vec<(String, String)> {
    let folder = place::workspace().join("sql/upgrade/released");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let scripts = files.map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        let version = name.trim_start_matches("lanes--").trim_end_matches(".sql");
        let script = std::fs::read_to_string(file.path()).unwrap();
        (version.to_owned(), script)
    });
    scripts.filter(|(version, _)| version != CURRENT).collect()
}

#[test]
fn an_upgraded_database_is_like_a_new_one() {
    let private = PrivateInstallation::of(&Postgres::chosen().unwrap()).unwrap();
    let present = private.script(&format!("lanes--{CURRENT}.sql")).unwrap();
    let (from, to) = FUNCTION;
    let start = present.find(from).expect("the function of the test");
    let end = start + present[start..].find(to).unwrap();
    let older = [&present[..start], &present[end..]].concat();
    let mut versions = vec![(OLDER.to_owned(), older)];
    versions.extend(released());
    for (version, script) in &versions {
        private
            .add_script(&format!("lanes--{version}.sql"), script)
            .unwrap();
    }
    let upgrade_script = format!("lanes--{OLDER}--{CURRENT}.sql");
    private
        .add_script(&upgrade_script, &present[start..end])
        .unwrap();
    let cluster = Cluster::builder("extension_update")
        .postgres(private.postgres())
        .start()
        .unwrap();
    cluster.psql("postgres", "CREATE EXTENSION lanes").unwrap();
    let expected = catalogs::of(&cluster, "postgres");
    assert!(expected.len() > 300, "{}", expected.len());
    for (number, (version, _)) in versions.iter().enumerate() {
        upgrade(&cluster, &format!("from_{number}"), version);
        let found = catalogs::of(&cluster, &format!("from_{number}"));
        let missing: Vec<_> = expected.difference(&found).collect();
        let more: Vec<_> = found.difference(&expected).collect();
        assert!(
            missing.is_empty() && more.is_empty(),
            "{version}: - {missing:#?} + {more:#?}"
        );
    }
}

/// Makes a database with an older version, and upgrades it.
fn upgrade(cluster: &Cluster, database: &str, version: &str) {
    let make = format!("CREATE DATABASE {database}");
    cluster.psql("postgres", &make).unwrap();
    cluster
        .psql(
            database,
            &format!(
                "CREATE EXTENSION lanes VERSION '{version}'; \
                 CREATE TABLE kept (k int PRIMARY KEY, v text) USING lanes WITH (order_by = 'v'); \
                 INSERT INTO kept SELECT g, 'v' || g % 7 FROM generate_series(1, 5000) g"
            ),
        )
        .unwrap();
    cluster.psql(database, "VACUUM kept").unwrap();
    let expected = cluster
        .query(database, "SELECT * FROM kept ORDER BY k")
        .unwrap();
    cluster
        .psql(database, "ALTER EXTENSION lanes UPDATE")
        .unwrap();
    let installed = "SELECT extversion FROM pg_extension WHERE extname = 'lanes'";
    assert_eq!(cluster.scalar(database, installed).unwrap(), CURRENT);
    cluster.psql(database, "SELECT lanes.seal('kept')").unwrap();
    let found = cluster
        .query(database, "SELECT * FROM kept ORDER BY k")
        .unwrap();
    assert_eq!(found, expected);
}

//! TLS from the gateway to PostgreSQL: a server that lets nobody in without it.

use crate::files::Authority;
use crate::{AT, until, up};
use lanes_support::account::Account;
use lanes_support::cluster::Cluster;
use lanes_support::gateway::{Gateway, Settings};
use lanes_support::provision::{DATABASE, GATEWAY, Passwords, READER, provision};
use lanes_support::remote_write::body;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// Through TCP, only sessions with TLS are let in, and the reader by its certificate.
const HOST_BASED_ACCESS: &str = "\
local   all postgres            peer map=admin
hostssl all lanes_reader all    cert
hostssl all all          all    scram-sha-256
";

/// A cluster with TLS, whose certificate is for `localhost`.
struct Server {
    cluster: Cluster,
    passwords: Passwords,
    folder: PathBuf,
}

impl Server {
    fn start(name: &str) -> Server {
        let mut cluster = Cluster::builder(name).create().unwrap();
        let account = Account::for_postgres().unwrap();
        let folder = cluster.folder().join("tls");
        std::fs::create_dir_all(&folder).unwrap();
        let authority = Authority::new();
        authority.write(&folder.join("ca.crt"));
        authority.write_server(&folder);
        authority.write_client(&folder, READER);
        let access = cluster.data().join("pg_hba.conf");
        std::fs::write(&access, HOST_BASED_ACCESS).unwrap();
        for (setting, file) in [
            ("ssl_ca_file", "ca.crt"),
            ("ssl_cert_file", "server.crt"),
            ("ssl_key_file", "server.key"),
        ] {
            let copy = cluster.data().join(file);
            std::fs::copy(folder.join(file), &copy).unwrap();
            make_private(&copy);
            account.make_owner_of(&copy).unwrap();
            cluster.set(setting, file);
        }
        cluster.set("ssl", "on");
        cluster.start().unwrap();
        let passwords = Passwords::generate();
        provision(&cluster, &passwords).unwrap();
        Server {
            cluster,
            passwords,
            folder,
        }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// Returns the settings of a gateway that connects with these keys.
    fn settings(&self, name: &str, keys: &str) -> Settings {
        let port = self.cluster.port();
        let connection = format!("port={port} user={GATEWAY} dbname={DATABASE} {keys}");
        let settings = Settings::for_test(name, &self.cluster, &self.passwords).unwrap();
        settings
            .environment("LANES_GATEWAY_POSTGRES_CONNECTION", &connection)
            .environment("LANES_GATEWAY_SELF_SCRAPE_INTERVAL", "0")
    }

    fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        self.cluster.query("postgres", sql).unwrap()
    }
}

fn make_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(file, mode).unwrap();
}

#[test]
fn all_sessions_have_tls_and_a_statement_is_cancelled_through_it() {
    let server = Server::start("database_tls");
    let roots = server.file("ca.crt");
    // With channel binding, the server proves that it knows the password by this very session.
    let writes = format!("host=localhost sslrootcert={roots} channel_binding=require");
    let reads = format!(
        "postgresql://{READER}@localhost:{}/{DATABASE}?sslmode=verify-full&sslrootcert={roots}&sslcert={}&sslkey={}",
        server.cluster.port(),
        server.file("lanes_reader.crt"),
        server.file("lanes_reader.key")
    );
    let objects = server.file("objects");
    let settings = server
        .settings("gateway", &writes)
        .environment("LANES_GATEWAY_QUERY_CONNECTION", &reads)
        .environment("LANES_GATEWAY_QUERY_SESSIONS", "1")
        .environment("LANES_GATEWAY_OBJECTS_URL", &objects);
    let gateway = Gateway::start(settings).unwrap();
    let written = gateway.remote_write(&body(&up(&["a"])), None).unwrap();
    assert_eq!(written.status, 204, "{}", written.body);
    let query = format!("/api/v1/query?query=up&time={AT}");
    let answer = gateway.get(&query).unwrap();
    assert!(answer.body.contains(r#""job":"a""#), "{}", answer.body);

    let sessions = "SELECT DISTINCT application_name, ssl, client_dn FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) \
                    WHERE application_name LIKE 'lanes-gateway%' ORDER BY 1";
    let expected = [
        ("lanes-gateway", None),
        ("lanes-gateway objects", None),
        ("lanes-gateway query", Some("/CN=lanes_reader".to_owned())),
    ];
    let expected = expected
        .map(|(name, client)| vec![Some(name.to_owned()), Some("t".to_owned()), client])
        .to_vec();
    until("all parts have sessions", || {
        server.rows(sessions).len() >= expected.len()
    });
    assert_eq!(server.rows(sessions), expected);
    cancelled(&server, &gateway, &query);
}

/// A client goes away, and so its statement is cancelled.
fn cancelled(server: &Server, gateway: &Gateway, query: &str) {
    let state = "SELECT state FROM pg_stat_activity WHERE application_name = 'lanes-gateway query'";
    let is = |state_wanted: &str| server.rows(state) == [[Some(state_wanted.to_owned())]];
    let mut lock = server.cluster.connect(DATABASE).unwrap();
    lock.batch_execute("BEGIN; LOCK TABLE lanes.samples IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", gateway.port())).unwrap();
    write!(client, "GET {query} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").unwrap();
    until("the query runs", || is("active"));
    drop(client);
    until("the query is cancelled", || is("idle"));
}

#[test]
fn a_server_that_cannot_be_verified_is_refused_with_the_remedy() {
    let mut server = Server::start("database_tls_refused");
    let other = Authority::new();
    other.write(&server.folder.join("other.crt"));
    let [right, wrong] = ["ca.crt", "other.crt"].map(|name| server.file(name));
    refused(
        &server,
        &format!("host=localhost sslrootcert={wrong}"),
        "signed by no known authority; name the authority's file in sslrootcert",
    );
    refused(
        &server,
        "host=localhost sslmode=verify-full",
        "signed by no known authority",
    );
    refused(
        &server,
        &format!("host=127.0.0.1 sslrootcert={right}"),
        "not for this host, but for DnsName(\"localhost\"); connect to a name of the certificate",
    );
    refused(&server, "host=127.0.0.1 sslmode=disable", "no encryption");
    for keys in [
        // The default on loopback: with TLS where the server demands it.
        "host=127.0.0.1".to_owned(),
        format!("host=127.0.0.1 sslmode=verify-ca sslrootcert={right}"),
        format!("host=localhost hostaddr=127.0.0.1 sslrootcert={right}"),
    ] {
        let settings = server.settings("let_in", &keys);
        Gateway::start(settings).unwrap_or_else(|error| panic!("{keys}: {error}"));
    }
    server.cluster.set("ssl", "off");
    server.cluster.restart().unwrap();
    refused(
        &server,
        "host=localhost sslmode=require",
        "the server has no TLS, which sslmode demands; set ssl = on",
    );
}

/// A gateway with these keys is not ready, and its log has the words.
fn refused(server: &Server, keys: &str, words: &str) {
    // In place of the authorities of this machine, if it has any.
    let settings = server
        .settings("refused", keys)
        .environment("SSL_CERT_FILE", &server.file("other.crt"));
    let mut gateway = Gateway::new(settings);
    // A log of an earlier gateway has other words.
    let _ = std::fs::remove_file(gateway.log());
    gateway.start_again().unwrap();
    let log = || std::fs::read_to_string(gateway.log()).unwrap_or_default();
    until(words, || log().contains(words));
    let ready = gateway.get("/-/ready").unwrap();
    assert_eq!(ready.status, 503, "{keys}: {}", ready.body);
}

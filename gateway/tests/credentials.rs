//! Credentials and TLS with a database in memory: who is let in, before what is read, and as whom.

mod support;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use support::{Memory, simple, start_on, table};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tower::ServiceExt;

/// `alice` with password `secret`, `bob` with `other`, and the token `token` of `feed`, whose role
/// is `writer`.
const USERS: &str = "\
basic_auth_users:
  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
bearer_tokens:
  feed: 3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0
postgres_roles:
  feed: writer
";

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("lanes-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn alice() -> String {
    format!("Basic {}", STANDARD.encode("alice:secret"))
}

fn request(method: &str, path: &str, authorization: Option<&str>, body: Body) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    let kind = match path {
        "/api/v1/write" => "application/x-protobuf",
        _ => "application/json",
    };
    request = request.header("content-type", kind);
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    request.body(body).unwrap()
}

/// A body that never arrives.
fn endless() -> Body {
    Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>())
}

/// A gateway on a database with the table `public.t`, and the answers of its router.
async fn answer(database: &Arc<Memory>, file: &str, request: Request<Body>) -> Response<Body> {
    let app = start_on(&["--listen-web-config", file], database);
    let answer = app.router().oneshot(request);
    tokio::time::timeout(Duration::from_secs(20), answer)
        .await
        .expect("an answer")
        .unwrap()
}

fn database() -> Arc<Memory> {
    let database = Memory::default();
    let table = table(7, "public.t");
    database.tables.lock().insert(table.name.clone(), table);
    Arc::new(database)
}

const ROUTES: [(&str, &str); 12] = [
    ("POST", "/api/v1/write"),
    ("POST", "/api/v1/events/t"),
    ("GET", "/api/v1/query?query=up"),
    ("POST", "/api/v1/query"),
    ("GET", "/api/v1/labels"),
    ("GET", "/federate"),
    ("GET", "/api/v1/status"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/token/x"),
    ("GET", "/no/such/route"),
    ("DELETE", "/api/v1/write"),
];

#[tokio::test]
async fn every_route_but_the_probes_wants_credentials_before_the_body() {
    let folder = Folder::new("routes");
    let file = folder.file("web.yml", USERS);
    let database = database();
    for (method, path) in ROUTES {
        for wrong in [None, Some("Bearer wrong"), Some("Basic !")] {
            let refused = answer(&database, &file, request(method, path, wrong, endless())).await;
            assert_eq!(refused.status(), 401, "{method} {path} {wrong:?}");
            let challenges = refused.headers().get_all("www-authenticate");
            assert_eq!(challenges.iter().count(), 2);
        }
        let right = request(method, path, Some("Bearer token"), Body::empty());
        let taken = answer(&database, &file, right).await;
        assert_ne!(taken.status(), 401, "{method} {path}");
    }
    for path in ["/-/healthy", "/-/ready", "/token", "/page/main.js"] {
        let open = answer(&database, &file, request("GET", path, None, Body::empty())).await;
        assert_ne!(open.status(), 401, "{path}");
    }
    let metrics = request("GET", "/metrics", Some("Bearer token"), Body::empty());
    assert_eq!(answer(&database, &file, metrics).await.status(), 200);
}

#[tokio::test]
async fn users_write_where_their_role_may_insert() {
    let folder = Folder::new("writers");
    let file = folder.file("web.yml", USERS);
    let database = database();
    let write = |who: String| {
        request(
            "POST",
            "/api/v1/write",
            Some(&who),
            simple("up", 1.0).into(),
        )
    };
    let event = |who: String, path: &str, body| request("POST", path, Some(&who), body);
    let (alice, feed) = (alice(), "Bearer token".to_owned());

    let status = answer(&database, &file, write(alice.clone()))
        .await
        .status();
    assert_eq!(status, 403, "no role alice");
    database
        .grants
        .lock()
        .insert(("alice".to_owned(), "lanes.samples".to_owned()));
    database
        .grants
        .lock()
        .insert(("writer".to_owned(), "public.t".to_owned()));
    let status = answer(&database, &file, write(alice.clone()))
        .await
        .status();
    assert_eq!(status, 204);
    let status = answer(&database, &file, write(feed.clone())).await.status();
    assert_eq!(status, 403, "the role of feed may insert into t only");
    assert_eq!(database.values("up"), [1.0]);

    let path = "/api/v1/events/t";
    let row = || Body::from("[{\"n\": 1}]");
    assert_eq!(
        answer(&database, &file, event(feed.clone(), path, row()))
            .await
            .status(),
        204
    );
    let denied = answer(&database, &file, event(alice.clone(), path, endless())).await;
    assert_eq!(denied.status(), 403, "before the body");
    let missing = event(feed.clone(), "/api/v1/events/u", endless());
    assert_eq!(answer(&database, &file, missing).await.status(), 404);
    let nul = event(feed.clone(), "/api/v1/events/%00", endless());
    assert_eq!(answer(&database, &file, nul).await.status(), 404);
    database.is_away.store(true, Ordering::Release);
    let away = answer(&database, &file, event(feed, path, row())).await;
    assert_eq!(away.status(), 503);
    assert!(away.headers().contains_key("retry-after"));
}

/// Privileges are asked for once and believed for a while; a new GRANT is seen after a second.
#[tokio::test]
async fn privileges_are_asked_for_now_and_then() {
    let folder = Folder::new("privileges");
    let file = folder.file("web.yml", USERS);
    let database = database();
    database
        .grants
        .lock()
        .insert(("alice".to_owned(), "public.t".to_owned()));
    let router = start_on(&["--listen-web-config", &file], &database).router();
    let status = async || {
        let body = simple("up", 1.0).into();
        let request = request("POST", "/api/v1/write", Some(&alice()), body);
        router
            .clone()
            .oneshot(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    for _ in 0..5 {
        assert_eq!(status().await, 403);
    }
    assert_eq!(database.privilege_calls.load(Ordering::Acquire), 1);
    database
        .grants
        .lock()
        .insert(("alice".to_owned(), "lanes.samples".to_owned()));
    tokio::time::sleep(Duration::from_millis(1100)).await;
    for _ in 0..5 {
        assert_eq!(status().await, 204);
    }
    assert_eq!(database.privilege_calls.load(Ordering::Acquire), 2);
    database.grants.lock().clear();
    tokio::time::sleep(Duration::from_millis(5100)).await;
    assert_eq!(status().await, 403);
}

/// An authority and what it has signed.
struct Authority {
    certificate: rcgen::Certificate,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        Authority {
            certificate,
            issuer: rcgen::Issuer::new(parameters, key),
        }
    }

    fn sign(&self) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let parameters = rcgen::CertificateParams::new(names).unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// A client that trusts this authority, perhaps with a certificate.
    fn client(&self, own: Option<(rcgen::Certificate, rcgen::KeyPair)>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        }
    }
}

struct Server {
    address: SocketAddr,
    _stop: watch::Sender<bool>,
}

async fn serve(file: &str, flags: &[&str]) -> Server {
    let mut all = vec!["--listen-web-config", file];
    all.extend(flags);
    let app = start_on(&all, &database());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(app.serve(listener, stopped));
    Server {
        address,
        _stop: stop,
    }
}

impl Server {
    /// The first line of the answer to `GET path`, or the error of TLS.
    async fn get(&self, client: ClientConfig, path: &str) -> Result<String, String> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(client));
        let fails = |error: std::io::Error| error.to_string();
        let mut stream = connector.connect(name, stream).await.map_err(fails)?;
        let text = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer token\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).await.map_err(fails)?;
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match answer.lines().next() {
            Some(line) => Ok(line.to_owned()),
            None => Err(ended.map_or_else(fails, |_| "no answer".to_owned())),
        }
    }
}

fn write_pair(folder: &Folder, (certificate, key): &(rcgen::Certificate, rcgen::KeyPair)) {
    folder.file("server.crt", &certificate.pem());
    folder.file("server.key", &key.serialize_pem());
}

const TLS: &str = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";

#[tokio::test]
async fn tls_is_served_and_plain_and_slow_clients_are_not() {
    let (folder, authority) = (Folder::new("tls"), Authority::new());
    write_pair(&folder, &authority.sign());
    let file = folder.file("web.yml", &format!("{TLS}{USERS}"));
    let server = serve(&file, &["--listen-handshake-timeout", "1s"]).await;
    let line = server.get(authority.client(None), "/metrics").await;
    assert_eq!(line.as_deref(), Ok("HTTP/1.1 200 OK"));
    let stranger = Authority::new();
    assert!(server.get(stranger.client(None), "/metrics").await.is_err());
    let mut h2_only = authority.client(None);
    h2_only.alpn_protocols = vec![b"h2".to_vec()];
    assert!(server.get(h2_only, "/metrics").await.is_err());

    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain
        .write_all(b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes).await;
    assert!(!String::from_utf8_lossy(&bytes).contains("HTTP/1.1"));
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let closed = slow.read_to_end(&mut bytes);
    let closed = tokio::time::timeout(Duration::from_secs(10), closed).await;
    assert!(closed.is_ok(), "the handshake has a timeout");
}

#[tokio::test]
async fn client_certificates_are_wanted_if_the_file_says_so() {
    let (folder, authority) = (Folder::new("clients"), Authority::new());
    write_pair(&folder, &authority.sign());
    folder.file("clients.crt", &authority.certificate.pem());
    let wants =
        |kind: &str| format!("{TLS}  client_ca_file: clients.crt\n  client_auth_type: {kind}\n");
    let required = folder.file("required.yml", &wants("RequireAndVerifyClientCert"));
    let server = serve(&required, &[]).await;
    let known = server
        .get(authority.client(Some(authority.sign())), "/metrics")
        .await;
    assert_eq!(known.as_deref(), Ok("HTTP/1.1 200 OK"));
    assert!(
        server
            .get(authority.client(None), "/metrics")
            .await
            .is_err()
    );
    let strange = authority.client(Some(Authority::new().sign()));
    assert!(server.get(strange, "/metrics").await.is_err());

    let if_given = folder.file("if_given.yml", &wants("VerifyClientCertIfGiven"));
    let server = serve(&if_given, &[]).await;
    assert!(server.get(authority.client(None), "/metrics").await.is_ok());
    let strange = authority.client(Some(Authority::new().sign()));
    assert!(server.get(strange, "/metrics").await.is_err());
}

#[test]
fn addresses_that_others_reach_need_tls_and_credentials() {
    let (folder, authority) = (Folder::new("demand"), Authority::new());
    write_pair(&folder, &authority.sign());
    folder.file("clients.crt", &authority.certificate.pem());
    let with_clients = format!(
        "{TLS}  client_ca_file: clients.crt\n  client_auth_type: RequireAndVerifyClientCert\n"
    );
    for (text, expected) in [
        (USERS.to_owned(), Some("needs tls_server_config")),
        (TLS.to_owned(), Some("needs basic_auth_users")),
        (with_clients, None),
        (format!("{TLS}{USERS}"), None),
    ] {
        let file = folder.file("web.yml", &text);
        use lanes_gateway::access::settings::{Demand, load};
        let loaded = load(Path::new(&file), Demand::Protection);
        match (loaded.map(|_| ()), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            (found, expected) => panic!("{found:?}, not {expected:?}: {text}"),
        }
        assert!(load(Path::new(&file), Demand::Nothing).is_ok());
    }
    // A key that is not that of the certificate.
    let (_, other_key) = authority.sign();
    folder.file("server.key", &other_key.serialize_pem());
    let file = folder.file("web.yml", TLS);
    use lanes_gateway::access::settings::{Demand, load};
    assert!(load(Path::new(&file), Demand::Nothing).is_err());
}

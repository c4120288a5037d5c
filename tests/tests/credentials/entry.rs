//! Who is let in on which route; users and certificates that change; the log.

use crate::client::{self, Client};
use crate::files::{ALICE, ALICE_NEW, Authority, BOB, FEED, basic, feed, write_users};
use crate::{Stage, until, up};
use std::io::Write;

const ROUTES: [(&str, &str); 9] = [
    ("POST", "/api/v1/write"),
    ("POST", "/api/v1/events/t"),
    ("GET", "/api/v1/query?query=up"),
    ("GET", "/api/v1/series?match[]=up"),
    ("GET", "/api/v1/label/job/values"),
    ("GET", "/federate?match[]=up"),
    ("GET", "/api/v1/status/tsdb"),
    ("GET", "/api/v1/status"),
    ("GET", "/metrics"),
];

#[test]
fn every_route_wants_credentials_and_the_log_has_none() {
    let mut stage = Stage::start("credentials_routes");
    let client = stage.client();
    let wrong = [
        None,
        Some(basic("alice", "wrong-secret-1")),
        Some(basic("nobody", ALICE.0)),
        Some("Bearer wrong-secret-2".to_owned()),
        Some("Basic wrong-secret-3".to_owned()),
    ];
    for (method, path) in ROUTES {
        for who in &wrong {
            let header = who.as_deref().map(|who| ("authorization", who));
            let refused = client.send(method, path, header.as_slice(), b"");
            assert_eq!(
                refused.status, 401,
                "{method} {path} {who:?}: {}",
                refused.body
            );
            assert!(
                refused
                    .head
                    .to_lowercase()
                    .contains("www-authenticate: basic realm=")
            );
        }
        let right = [("authorization", feed())];
        let right = right.each_ref().map(|(name, who)| (*name, who.as_str()));
        let taken = client.send(method, path, &right, b"");
        assert_ne!(taken.status, 401, "{method} {path}: {}", taken.body);
    }
    let counted = r#"http_unauthorized_total{reason="missing"}"#;
    assert_eq!(stage.metric(&feed(), counted), ROUTES.len() as f64);
    for probe in ["/-/healthy", "/-/ready"] {
        assert_eq!(client.send("GET", probe, &[], b"").status, 200);
    }
    refused_before_the_body(&client);
    assert_eq!(stage.write(&feed(), &up(&["a"])).status, 204);

    stage.gateway.stop().unwrap();
    let log = stage.log();
    for secret in [
        ALICE.0,
        ALICE.1,
        FEED.0,
        FEED.1,
        "wrong-secret",
        "Basic ",
        "Bearer ",
    ] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

/// The body of this request never arrives.
fn refused_before_the_body(client: &Client) {
    for path in ["/api/v1/write", "/api/v1/events/t", "/api/v1/query"] {
        let mut stream = client.connect().unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 401", "{path}");
    }
    let mut plain = std::net::TcpStream::connect(("127.0.0.1", client.port())).unwrap();
    plain
        .write_all(b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert!(client::read(&mut plain).is_err(), "no answer without TLS");
}

#[test]
fn users_and_certificates_are_read_again() {
    let stage = Stage::start("credentials_reload");
    let status = |password: &str| {
        stage
            .get(&basic("alice", password), "/api/v1/status")
            .status
    };
    assert_eq!((status(ALICE.0), status(ALICE_NEW.0)), (200, 401));

    write_users(&stage.folder, &[("alice", ALICE_NEW.1)]);
    until("the new password is right", || status(ALICE_NEW.0) == 200);
    assert_eq!(status(ALICE.0), 401, "the old one is forgotten");
    let bob = basic("bob", BOB.0);
    let good = "web_config_last_reload_successful";
    assert_eq!(stage.metric(&bob, good), 1.0);

    // A broken file changes nothing.
    write_users(&stage.folder, &[("alice", "broken-hash-77")]);
    until("the file is refused", || stage.metric(&bob, good) == 0.0);
    assert_eq!((status(ALICE_NEW.0), status(ALICE.0)), (200, 401));
    let log = stage.log();
    assert!(
        log.contains("basic_auth_users.alice: must be a bcrypt hash"),
        "{log}"
    );
    assert!(!log.contains("broken-hash-77"));
    let refused = r#"web_config_reloads_total{result="refused"}"#;
    assert!(stage.metric(&bob, refused) >= 1.0);

    write_users(&stage.folder, &[]);
    until("the file is used again", || stage.metric(&bob, good) == 1.0);
    assert_eq!(status(ALICE.0), 200);

    // Clients that trust only the second authority.
    let second = Authority::new();
    let client = Client::new(stage.gateway.port(), &second);
    let is_trusted = || client.try_send("GET", "/-/healthy", &[], b"").is_ok();
    assert!(!is_trusted());
    second.write_server(&stage.folder);
    until("the new certificate is used", is_trusted);
}

#[test]
fn hang_up_reads_the_file_at_once() {
    let mut stage = Stage::start("credentials_hang_up");
    let reloads = r#"web_config_reloads_total{result="used"}"#;
    let before = stage.metric(&feed(), reloads);
    let process = stage.gateway.process_id().unwrap();
    let sent = std::process::Command::new("kill")
        .args(["-HUP", &process.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    until("the file is read again", || {
        stage.metric(&feed(), reloads) == before + 1.0
    });
    stage.gateway.check().unwrap();
}

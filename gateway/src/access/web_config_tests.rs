//! Files that are taken, and files that are refused by name and without their values.

use super::*;

/// The bcrypt hash of `secret`, at cost 4.
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

fn read(text: &str) -> Result<WebConfig, String> {
    parse(text, Path::new("/etc/lanes")).map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("taken: {text}"),
        Err(error) => error,
    }
}

#[test]
fn all_sections_are_read() {
    let digits = "0123456789abcdefABCDEF".repeat(3)[..64].to_owned();
    let config = read(&format!(
        "# comment\ntls_server_config:\n  cert_file: server.crt\n  key_file: /k/server.key\n  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: \"clients.crt\"\n  min_version: TLS13\nbasic_auth_users:\n  alice: {HASH}\n  'Bob B': '{HASH}'\nbearer_tokens:\n  feed: {digits}\npostgres_roles:\n  feed: Writer\n"
    ))
    .unwrap();
    let expected = TlsFiles {
        certificate: "/etc/lanes/server.crt".into(),
        key: "/k/server.key".into(),
        client_ca: Some("/etc/lanes/clients.crt".into()),
        client_auth: ClientAuth::Required,
        least: TlsVersion::Tls13,
        greatest: TlsVersion::Tls13,
    };
    assert_eq!(config.tls, Some(expected));
    let users = config.passwords.iter();
    let users = users.map(|(user, hash)| (user.name.as_str(), &*user.role, hash.as_str()));
    let expected = [("Bob B", "Bob B", HASH), ("alice", "alice", HASH)];
    assert_eq!(users.collect::<Vec<_>>(), expected);
    let [(user, digest)] = &config.tokens[..] else {
        panic!("one token")
    };
    assert_eq!((user.name.as_str(), &*user.role), ("feed", "Writer"));
    assert_eq!(digest[..4], [0x01, 0x23, 0x45, 0x67]);
}

#[test]
fn users_have_limits_of_their_own() {
    let config = read(&format!(
        "basic_auth_users: {{a: '{HASH}', b: '{HASH}'}}\nwrite_limits: {{b: {{series_max: 5, samples_per_second: 0}}}}"
    ));
    let users = config.unwrap().passwords;
    let limits: Vec<OwnLimits> = users.iter().map(|(user, _)| user.limits).collect();
    let of_b = OwnLimits::of([(Limit::Series, Some(5)), (Limit::Samples, Some(0))]);
    assert_eq!(limits, [OwnLimits::default(), of_b.unwrap()]);
}

#[test]
fn empty_files_and_sections_are_taken() {
    for text in ["", "# nothing\n", "basic_auth_users:\n", "{}"] {
        let config = read(text).unwrap();
        assert!(config.tls.is_none() && config.passwords.is_empty() && config.tokens.is_empty());
    }
}

#[test]
fn unknown_keys_are_named() {
    for (text, expected) in [
        (
            "http_server_config:\n  http2: true\n",
            "line 1: unknown key http_server_config",
        ),
        (
            "tls_server_config:\n  cert_file: a\n  cipher_suites: [x]\n",
            "line 3: unknown key cipher_suites",
        ),
        (
            "basic_auth_user: {}\n",
            "unknown key basic_auth_user; known are tls_server_config, ",
        ),
        (
            "basic_auth_users: {}\nbasic_auth_users: {}\n",
            "basic_auth_users is there twice",
        ),
        (
            "write_limits:\n  a: {series: 1}\n",
            "line 2: unknown key series; known are samples_per_second, series_max, ",
        ),
        (
            "write_limits:\n  a: {series_max: 1, series_max: 2}\n",
            "series_max is there twice",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn wrong_values_are_named() {
    let tls = "tls_server_config: {cert_file: c, key_file: k, ";
    for (text, expected) in [
        (
            "basic_auth_users: {a: plain}".to_owned(),
            "basic_auth_users.a: must be a bcrypt hash",
        ),
        (
            format!("basic_auth_users: {{a: '{}'}}", HASH.replace("2b", "2x")),
            "must be a bcrypt hash",
        ),
        (
            format!(
                "basic_auth_users: {{a: '{}'}}",
                HASH.replace("$04$", "$17$")
            ),
            "cost of the hash is greater than 16",
        ),
        (
            format!("basic_auth_users: {{'a:b': '{HASH}'}}"),
            "a name has no colon",
        ),
        (
            format!("basic_auth_users: {{none: '{HASH}'}}"),
            "basic_auth_users.none: PostgreSQL has no role",
        ),
        (
            format!("basic_auth_users: {{a: '{HASH}'}}\npostgres_roles: {{a: none}}"),
            "postgres_roles.a: PostgreSQL has no role",
        ),
        (
            format!("basic_auth_users: {{a: '{HASH}'}}\npostgres_roles: {{b: c}}"),
            "postgres_roles.b: neither",
        ),
        (
            format!("basic_auth_users: {{a: '{HASH}'}}\nwrite_limits: {{b: {{}}}}"),
            "write_limits.b: neither",
        ),
        (
            format!(
                "basic_auth_users: {{a: '{HASH}'}}\nwrite_limits: {{a: {{series_max: 100000001}}}}"
            ),
            "write_limits.a.series_max: must be at most 100000000",
        ),
        (
            format!("basic_auth_users: {{a: '{HASH}'}}\nwrite_limits: {{a: {{series: 1}}}}"),
            "unknown key series; known are samples_per_second",
        ),
        (
            format!("basic_auth_users: {{a: '{HASH}'}}\nwrite_limits: {{a: {{series_max: -1}}}}"),
            "numbers in write_limits",
        ),
        (
            "bearer_tokens: {t: abc}".to_owned(),
            "bearer_tokens.t: must be the SHA-256",
        ),
        (
            format!("bearer_tokens: {{t: {}g}}", "0".repeat(63)),
            "bearer_tokens.t: must be the SHA-256",
        ),
        (
            "tls_server_config: {cert_file: c}".to_owned(),
            "tls_server_config.key_file: must name a file",
        ),
        (
            format!("{tls}client_auth_type: RequireAnyClientCert}}"),
            "certificates that nobody verifies",
        ),
        (
            format!("{tls}client_auth_type: Yes}}"),
            "client_auth_type: is none of",
        ),
        (
            format!("{tls}client_ca_file: a}}"),
            "client_auth_type: client_ca_file has no effect",
        ),
        (
            format!("{tls}client_auth_type: VerifyClientCertIfGiven}}"),
            "client_ca_file: must name a file",
        ),
        (
            format!("{tls}min_version: TLS10}}"),
            "TLS 1.0 and 1.1 are not supported",
        ),
        (
            format!("{tls}min_version: TLS13, max_version: TLS12}}"),
            "min_version: is greater than max_version",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn no_message_has_a_value() {
    for text in [
        "basic_auth_users: {a: hunter2}",
        "basic_auth_users: hunter2",
        "basic_auth_users: [hunter2]",
        "basic_auth_users: {a: [hunter2]}",
        "basic_auth_users: {a: {hunter2: 1}}",
        "tls_server_config: hunter2",
        "basic_auth_users:\n  a: 'hunter2\n",
        "basic_auth_users:\n  a: hunter2\n b: x\n",
        "bearer_tokens: {a: hunter2}",
        "hunter2",
        "bearer_tokens: {a: !!int hunter2}",
        "bearer_tokens: {a: *hunter2}",
    ] {
        let error = refused(text);
        assert!(!error.contains("hunter2"), "{error}");
    }
}

//! Right, wrong and missing credentials, and what is kept of them.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::*;
use crate::access::web_config;
use crate::metrics::Families;

fn loaded(text: &str) -> Loaded {
    let config = web_config::parse(text, Path::new("")).unwrap();
    Loaded {
        accounts: Accounts::new(config.passwords, config.tokens).map(Arc::new),
        tls: None,
    }
}

fn users(password: &str) -> Loaded {
    let hash = bcrypt::hash(password, 4).unwrap();
    let digest: String = Sha256::digest(b"token")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    loaded(&format!(
        "basic_auth_users: {{alice: '{hash}'}}\nbearer_tokens: {{feed: '{digest}'}}\npostgres_roles: {{feed: writer}}"
    ))
}

fn guard(loaded: &Loaded) -> Guard {
    Guard::new(loaded, Arc::new(AccessMetrics::new(&Families::new())))
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// The role of the user, or the status of the refusal.
async fn role(guard: &Guard, values: &[&str]) -> Result<String, u16> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(AUTHORIZATION, value.parse().unwrap());
    }
    match guard.admit(&headers).await {
        Ok(user) => Ok(user.map_or("(none)".to_owned(), |user| user.role.to_string())),
        Err(refusal) => Err(refusal.status().as_u16()),
    }
}

#[tokio::test]
async fn right_credentials_have_a_role_and_others_are_counted() {
    let guard = guard(&users("secret"));
    for _ in 0..3 {
        assert_eq!(
            role(&guard, &[&basic("alice", "secret")]).await.as_deref(),
            Ok("alice")
        );
        assert_eq!(
            role(&guard, &["Bearer token"]).await.as_deref(),
            Ok("writer")
        );
    }
    assert_eq!(
        guard.metrics.passwords_hashed.get(),
        1,
        "hashed once, then known"
    );
    for values in [
        &[][..],
        &["Bearer token", "Bearer token"],
        &["Bearer secret"],
        &["Digest x"],
        &[&basic("alice", "wrong")],
        &[&basic("alice", "wrong")],
        &[&basic("bob", "secret")],
        &[&basic("feed", "token")],
        &[&basic("Alice", "secret")],
    ] {
        assert_eq!(role(&guard, values).await, Err(401), "{values:?}");
    }
    assert_eq!(
        guard.metrics.passwords_hashed.get(),
        5,
        "a wrong one is known too"
    );
    let counted = |reason| {
        guard
            .metrics
            .unauthorized
            .with_label_values(&[reason])
            .get()
    };
    assert_eq!(
        (counted("missing"), counted("malformed"), counted("wrong")),
        (2, 1, 6)
    );
}

#[tokio::test]
async fn a_newer_file_forgets_what_was_known() {
    let guard = guard(&users("old"));
    let (old, new) = (basic("alice", "old"), basic("alice", "new"));
    assert!(role(&guard, &[&old]).await.is_ok());
    assert_eq!(role(&guard, &[&new]).await, Err(401));
    guard.replace(users("new"));
    assert_eq!(role(&guard, &[&old]).await, Err(401));
    assert!(role(&guard, &[&new]).await.is_ok());
    guard.replace(Loaded::default());
    assert_eq!(role(&guard, &[]).await.as_deref(), Ok("(none)"));
}

#[tokio::test]
async fn many_requests_with_one_password_hash_it_once() {
    let guard = guard(&users("secret"));
    let value = basic("alice", "secret");
    let values = [value.as_str()];
    let requests = (0..100).map(|_| role(&guard, &values));
    for admitted in futures_util::future::join_all(requests).await {
        assert_eq!(admitted.as_deref(), Ok("alice"));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let hashed = guard.metrics.passwords_hashed.get();
    assert!(hashed <= cores, "{hashed}");
}

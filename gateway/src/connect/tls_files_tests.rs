//! Files that cannot be used, and files that change.

use std::path::Path;

use tokio_postgres::config::SslMode;

use super::super::test_certificates::{Authority, Folder};
use super::*;

fn demand(roots: &Path, identity: Option<(&Path, &Path)>) -> Demand {
    Demand {
        first: SslMode::Require,
        second: None,
        check: Check::AuthorityAndName,
        roots: Roots::File(roots.to_owned()),
        identity: identity.map(|(cert, key)| (cert.to_owned(), key.to_owned())),
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = Folder::new("tls-files");
    let authority = Authority::new();
    let (certificate, key) = authority.sign("gateway", 2100);
    let roots = folder.file("ca.crt", &authority.certificate.pem());
    let certificate = folder.file("gateway.crt", &certificate.pem());
    let key_file = folder.file("gateway.key", &key.serialize_pem());
    let other = folder.file("other.key", &authority.sign("x", 2100).1.serialize_pem());
    let locked = key.serialize_pem().replace("PRIVATE", "ENCRYPTED PRIVATE");
    let locked = folder.file("locked.key", &locked);
    let text = folder.file("text", "no certificate");
    let missing = Path::new("/nonexistent");
    assert!(TlsFiles::load(demand(&roots, Some((&certificate, &key_file)))).is_ok());
    for (demand, expected) in [
        (
            demand(missing, None),
            "sslrootcert \"/nonexistent\": the gateway cannot read it: No such",
        ),
        (demand(&text, None), "has no certificate in PEM"),
        (
            demand(&roots, Some((missing, &key_file))),
            "sslcert \"/nonexistent\": the gateway cannot",
        ),
        (
            demand(&roots, Some((&certificate, missing))),
            "sslkey \"/nonexistent\": the gateway cannot",
        ),
        (
            demand(&roots, Some((&certificate, &text))),
            "has no private key in PEM without a password",
        ),
        (
            demand(&roots, Some((&certificate, &locked))),
            "run openssl pkey",
        ),
        (demand(&roots, Some((&certificate, &other))), "do not fit"),
    ] {
        let error = TlsFiles::load(demand).err().expect("an error");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn files_are_read_again_when_they_change_and_a_broken_one_changes_nothing() {
    let folder = Folder::new("tls-files-change");
    let roots = folder.file("ca.crt", &Authority::new().certificate.pem());
    let files = TlsFiles::load(demand(&roots, None)).unwrap();
    let stamp_of_current = |files: &TlsFiles| files.current.lock().0.clone();
    let before = stamp_of_current(&files);
    files.current();
    assert_eq!(stamp_of_current(&files), before, "nothing has changed");
    let renewed = format!("{}\n", Authority::new().certificate.pem());
    folder.file("ca.crt", &renewed);
    files.current();
    let after = stamp_of_current(&files);
    assert_ne!(after, before);
    folder.file("ca.crt", "broken");
    files.current();
    assert_ne!(
        stamp_of_current(&files),
        after,
        "it is not read at each session"
    );
}

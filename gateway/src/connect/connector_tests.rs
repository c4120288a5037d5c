//! Connection strings with their environment.

use tokio_postgres::config::Host;

use super::*;

fn connector(text: &str) -> Result<Connector, String> {
    Connector::with_environment(text, Some("word".to_owned()), |_| None)
}

#[test]
fn a_connection_string_is_read_as_libpq_does() {
    let connector = connector("host=127.0.0.1 user=a sslmode=disable application_name=b").unwrap();
    assert_eq!(connector.tls.demand().first, SslMode::Disable);
    assert_eq!(connector.config.get_user(), Some("a"));
    assert_eq!(connector.config.get_password(), Some(&b"word"[..]));
    let by_default = connector.clone().named_by_default("c");
    assert_eq!(by_default.config.get_application_name(), Some("b"));
    let named = connector.named("c");
    assert_eq!(named.config.get_application_name(), Some("c"));
}

#[test]
fn variables_of_the_environment_count_unless_the_string_says_otherwise() {
    let variable = |name: &str| (name == "PGSSLMODE").then(|| "disable".to_owned());
    let demand = |text: &str| {
        let connector = Connector::with_environment(text, None, variable).unwrap();
        connector.tls.demand().first
    };
    assert_eq!(demand("host=db"), SslMode::Disable);
    assert_eq!(demand("host=db sslmode=require"), SslMode::Require);
}

#[test]
fn an_address_alone_is_the_name_that_is_verified() {
    let connector = connector("hostaddr=127.0.0.1 sslmode=require").unwrap();
    assert_eq!(
        connector.config.get_hosts(),
        [Host::Tcp("127.0.0.1".to_owned())]
    );
}

#[test]
fn errors_repeat_no_value() {
    for text in [
        "host=a password=secret port=x",
        "host=a secret",
        "host=a sslmode=secret",
    ] {
        let error = connector(text).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
    let error = connector("host=a port=1,2").unwrap_err();
    assert!(error.contains("2 ports for 1 hosts"), "{error}");
}

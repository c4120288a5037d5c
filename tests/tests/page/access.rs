//! The page of a gateway with users: a name and a password, which the browser has, and a token,
//! which the page asks for.

use super::{PATIENCE, Stage, asked, click, require_no_faults, wait_for_text};
use lanes_support::browser::Browser;
use serde_json::json;
use std::time::Instant;

/// `alice` with the password `secret`, and `feed` with the token `token`. Both read as the role of
/// `query.connection`.
const USERS: &str = "\
basic_auth_users:
  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
bearer_tokens:
  feed: 3c469e9d6c5875d37a43f353d4f88e61fcf812c66eee3457465a40b0da4153e0
postgres_roles:
  alice: lanes_reader
  feed: lanes_reader
";

#[test]
fn users_ask_by_password_and_by_token_in_chromium() {
    let folder = std::env::temp_dir().join(format!("lanes-page-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("web.yml");
    // Without users at first, so that the samples are stored.
    std::fs::write(&file, "{}\n").unwrap();
    let stage = Stage::start_with("page_access", |settings| {
        settings.environment("LANES_GATEWAY_LISTEN_WEB_CONFIG", file.to_str().unwrap())
    });
    std::fs::write(&file, USERS).unwrap();
    let start = Instant::now();
    while stage.gateway.get("/api/v1/status").unwrap().status != 401 {
        assert!(start.elapsed() < PATIENCE, "the users are not read");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mut browser = stage.browser();
    a_browser_without_credentials_is_sent_to_the_token(&stage, &mut browser);
    a_page_asks_for_a_token(&stage, &mut browser);
    a_browser_has_a_password(&stage, &mut browser);
    require_no_faults(&browser);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn a_browser_without_credentials_is_sent_to_the_token(stage: &Stage, browser: &mut Browser) {
    // Chromium without a window has nobody to ask, and says that the gateway wants credentials.
    let refused = browser.open(&stage.address("")).unwrap_err().to_string();
    assert!(refused.contains("AUTH_CREDENTIALS"), "{refused}");
    let answer = stage.gateway.get("/").unwrap();
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Basic "), "{challenge}");
    assert!(answer.body.contains("the page at /token asks for a token"));
}

fn enter(browser: &mut Browser, token: &str) {
    let dialog = "document.getElementById('sign-in').open";
    browser.wait_for(dialog).unwrap();
    let fill = format!("document.getElementById('token').value = {}", json!(token));
    browser.evaluate(&fill).unwrap();
    click(browser, "#sign-in button");
}

fn a_page_asks_for_a_token(stage: &Stage, browser: &mut Browser) {
    let address = stage.gateway.url(&format!("/token#{}", asked("up")));
    browser.open(&address).unwrap();
    wait_for_text(browser, "#sign-in-why", "Enter the token of a user");
    enter(browser, "two words");
    wait_for_text(browser, "#sign-in-why", "without spaces");
    enter(browser, "wrong");
    wait_for_text(browser, "#sign-in-why", "does not take this token");
    enter(browser, "token");
    wait_for_text(browser, ".summary", "2 series");
    wait_for_text(browser, "#health-text", "ready");
    let kept = "[sessionStorage.getItem('lanes.token'), JSON.stringify(localStorage).includes('token'), location.href.includes('token=')]";
    let kept = browser.evaluate(kept).unwrap();
    assert_eq!(kept, json!(["token", false, false]));
    click(browser, "#sign-out");
    wait_for_text(browser, "#sign-in-why", "Enter the token of a user");
}

/// Chromium without a window asks nobody for a password, but takes one from an address, and sends
/// it with whatever it asks for afterwards.
fn a_browser_has_a_password(stage: &Stage, browser: &mut Browser) {
    let plain = stage.address(&asked("up"));
    let with_password = plain.replace("http://", "http://alice:secret@");
    browser.open(&with_password).unwrap();
    browser.open(&plain).unwrap();
    wait_for_text(browser, ".summary", "2 series");
    wait_for_text(browser, "#health-text", "ready");
    let hidden = "document.getElementById('sign-out').hidden";
    assert_eq!(browser.evaluate(hidden).unwrap(), json!(true));
}

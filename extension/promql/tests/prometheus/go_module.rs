//! Where the Go module of Prometheus lies, which holds the tests of its engine and parser.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The module and the version whose tests this crate passes.
const MODULE: &str = "github.com/prometheus/prometheus@v0.316.0";

/// Names a folder that holds the module already.
const FOLDER_VARIABLE: &str = "LANES_PROMETHEUS_MODULE";

/// The folder of the module.
///
/// # Panics
/// If the module cannot be found or downloaded.
pub fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => downloaded(),
    })
}

fn downloaded() -> PathBuf {
    let help = format!(
        "the tests read the Go module {MODULE}: install Go (`cargo dev setup` does), or name a \
         folder that holds the module in {FOLDER_VARIABLE}"
    );
    let output = Command::new("go")
        .args(["mod", "download", "-json", MODULE])
        .env("GOFLAGS", "-mod=mod")
        .env("GO111MODULE", "on")
        .current_dir(std::env::temp_dir())
        .output()
        .unwrap_or_else(|error| panic!("cannot run go: {error}; {help}"));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("go mod download: {error}; {help}"));
    match answer["Dir"].as_str() {
        Some(folder) => PathBuf::from(folder),
        None => panic!("go mod download: {}; {help}", answer["Error"]),
    }
}

/// The text of a file of the module.
///
/// # Panics
/// If the file cannot be read.
pub fn read(path: &str) -> String {
    let path = folder().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

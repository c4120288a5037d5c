//! node_exporter behind an nginx that caches its page for a second. Any number of targets can be
//! scraped without measuring node_exporter.

use super::data_folder::{empty, remove};
use super::http;
use crate::fleet::capture::NodeExporter;
use lanes_support::error::{Error, Result};
use lanes_support::port;
use lanes_support::process::{Process, Signal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Debian's nginx.
const NGINX: &str = "/usr/sbin/nginx";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Both processes. They end with the value.
#[derive(Debug)]
pub struct CachedExporter {
    nginx: Process,
    exporter: NodeExporter,
    port: u16,
    folder: PathBuf,
}

impl CachedExporter {
    /// Starts both and waits until the page can be read.
    pub fn start(folder: &Path) -> Result<CachedExporter> {
        if !Path::new(NGINX).exists() {
            return Err(Error::Missing {
                what: NGINX.to_owned(),
                remedy: "run `cargo dev peers`, which installs it",
            });
        }
        let folder = folder.join("cached-exporter");
        empty(&folder)?;
        let exporter = NodeExporter::start(&folder)?;
        let port = port::free()?;
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, configuration_text(port, exporter.port()))
            .map_err(Error::file("write", &configuration))?;
        let mut command = Command::new(NGINX);
        command.arg("-p").arg(&folder).arg("-c").arg(&configuration);
        let mut nginx = Process::start("nginx", &mut command, &folder.join("nginx.log"))?;
        let url = format!("http://127.0.0.1:{port}/metrics");
        nginx.wait_until("a page", TIMEOUT, || http::answers(&url))?;
        Ok(CachedExporter {
            nginx,
            exporter,
            port,
            folder,
        })
    }

    /// Returns the port on 127.0.0.1 for a scraper.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of series of the page.
    pub fn series(&self) -> Result<usize> {
        let page = self.exporter.page()?;
        Ok(page.lines().filter(|line| !line.starts_with('#')).count())
    }

    /// Stops both and removes their files.
    pub fn stop(&mut self) -> Result<()> {
        self.nginx.stop(Signal::QUIT, TIMEOUT)?;
        self.exporter.stop()?;
        remove(&self.folder)
    }
}

/// Returns a configuration with one process in the foreground, files in the folder of `-p`, and no
/// access log.
fn configuration_text(port: u16, exporter: u16) -> String {
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  proxy_cache_path cache keys_zone=pages:1m max_size=64m;
  keepalive_requests 1000000;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://127.0.0.1:{exporter};
      proxy_cache pages;
      proxy_cache_key $request_uri;
      proxy_cache_valid 200 1s;
      proxy_cache_lock on;
      proxy_cache_use_stale updating;
    }}
  }}
}}
"
    )
}

//! Chromium without a window, driven by its DevTools protocol.
//!
//! The messages go through two named pipes, which are Chromium's file descriptors 3 and 4. Each is a
//! JSON object followed by a zero byte:
//!
//! ```text
//! {"id": 1, "method": "Page.navigate", "params": {…}}   to Chromium
//! {"id": 1, "result": {…}}                              its answer
//! {"method": "Log.entryAdded", "params": {…}}           an event, at any time
//! ```

use crate::account::we_are_root;
use crate::error::{Error, Result};
use crate::place;
use crate::process::{Process, run};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Debian's program.
const PROGRAM: &str = "/usr/bin/chromium";
/// The time for one answer, and for a condition to become true.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A browser with one page. Its processes end with the value.
pub struct Browser {
    process: Process,
    requests: File,
    messages: Receiver<Value>,
    /// The name by which messages reach the page; empty until there is one.
    page: String,
    next: u64,
    faults: Vec<String>,
}

impl Browser {
    /// Starts a browser with its files in this folder, and opens an empty page.
    ///
    /// # Errors
    /// Chromium is not installed, or does not answer.
    pub fn start(folder: &Path) -> Result<Browser> {
        if !Path::new(PROGRAM).exists() {
            return Err(Error::Missing {
                what: PROGRAM.to_owned(),
                remedy: "run `make test-long`, which installs it, or install the package chromium",
            });
        }
        place::make_folder(folder)?;
        let pipe = |name: &str| -> Result<(PathBuf, File)> {
            let path = folder.join(name);
            run(Command::new("mkfifo").arg(&path))?;
            // Opened for both, a pipe does not wait for its other end.
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).open(&path);
            Ok((path.clone(), file.map_err(Error::file("open", &path))?))
        };
        let (requests_path, requests) = pipe("requests")?;
        let (answers_path, answers) = pipe("answers")?;
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" 3<\"$0/requests\" 4>\"$0/answers\""])
            .arg(folder)
            .arg(PROGRAM)
            .args(arguments())
            .arg(format!(
                "--user-data-dir={}",
                folder.join("profile").display()
            ))
            .env("HOME", folder);
        let process = Process::start("Chromium", &mut command, &folder.join("chromium.log"))?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(|read| read.ok()) {
                let message = serde_json::from_slice(&message).unwrap_or_default();
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            process,
            requests,
            messages,
            page: String::new(),
            next: 0,
            faults: Vec::new(),
        };
        browser.open_page()?;
        // Chromium has the pipes; their names are of no further use.
        for path in [requests_path, answers_path] {
            std::fs::remove_file(&path).map_err(Error::file("remove", &path))?;
        }
        Ok(browser)
    }

    fn open_page(&mut self) -> Result<()> {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach)?;
        let page = attached["sessionId"].as_str().unwrap_or_default();
        self.page = page.to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}))?;
        }
        self.resize(1280, 860)
    }

    /// Calls a method of the protocol, and returns its result.
    ///
    /// # Errors
    /// Chromium refuses the call, or does not answer in time.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.page.is_empty() {
            message["sessionId"] = Value::from(self.page.as_str());
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let written = self.requests.write_all(&bytes);
        written.map_err(|error| Error::Other(format!("Chromium takes no requests: {error}")))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(answer) = self.messages.recv_timeout(left) else {
                self.process.check()?;
                return Err(Error::Other(format!("{method}: Chromium does not answer")));
            };
            if answer["id"] != id {
                self.note(&answer);
                continue;
            }
            return match answer.get("error") {
                None => Ok(answer["result"].clone()),
                Some(error) => Err(Error::Other(format!("{method}: {error}"))),
            };
        }
    }

    /// Remembers an event that tells a fault of the page.
    fn note(&mut self, event: &Value) {
        let entry = &event["params"]["entry"];
        let is_fault = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            // An answer with an error is no fault of the page, which shows it.
            Some("Log.entryAdded") => entry["level"] == "error" && entry["source"] != "network",
            _ => false,
        };
        if is_fault {
            self.faults.push(event["params"].to_string());
        }
    }

    /// The exceptions of the page so far, and what the browser did not let it do.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Opens an address, as if it was typed.
    ///
    /// # Errors
    /// The browser refuses the address, or does not answer.
    pub fn open(&mut self, address: &str) -> Result<()> {
        // From an empty page, because another fragment alone would not load the page again.
        for address in ["about:blank", address] {
            let answer = self.call("Page.navigate", json!({"url": address}))?;
            if let Some(error) = answer["errorText"].as_str() {
                return Err(Error::Other(format!("{address}: {error}")));
            }
        }
        self.wait_for("document.readyState === 'complete' && location.protocol !== 'about:'")
            .map(|_| ())
    }

    /// Returns the value of an expression of JavaScript; a promise is waited for.
    ///
    /// # Errors
    /// The expression throws.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let parameters =
            json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", parameters)?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(thrown) => Err(Error::Other(format!("{expression}: {thrown}"))),
        }
    }

    /// Waits until an expression is neither false, 0, empty nor null, and returns its value.
    ///
    /// # Errors
    /// The expression does not become so in time; the error has the text of the page.
    pub fn wait_for(&mut self, expression: &str) -> Result<Value> {
        let start = Instant::now();
        loop {
            // An exception is one that occurs while the page is loaded.
            let value = self.evaluate(expression).unwrap_or_default();
            let is_so = match &value {
                Value::Null => false,
                Value::Bool(is_so) => *is_so,
                Value::Number(number) => number.as_f64() != Some(0.0),
                Value::String(text) => !text.is_empty(),
                Value::Array(_) | Value::Object(_) => true,
            };
            if is_so {
                return Ok(value);
            }
            if start.elapsed() > PATIENCE {
                let shown = self.evaluate("document.body.innerText")?;
                let faults = self.faults.join("\n");
                return Err(Error::Other(format!(
                    "not so within {} s: {expression}\nthe page shows {shown}\nfaults: {faults}",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Types a text into the element that has the focus.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn type_text(&mut self, text: &str) -> Result<()> {
        let typed = self.call("Input.insertText", json!({"text": text}));
        typed.map(|_| ())
    }

    /// Presses and releases a key, named as in `KeyboardEvent.key`.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn press(&mut self, key: &str) -> Result<()> {
        self.press_with(key, 0)
    }

    /// Presses a key while Ctrl is held.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn press_with_control(&mut self, key: &str) -> Result<()> {
        const CONTROL: u8 = 2;
        self.press_with(key, CONTROL)
    }

    fn press_with(&mut self, key: &str, modifiers: u8) -> Result<()> {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut event = json!({"type": "keyDown", "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code});
        if key.chars().count() == 1 && modifiers == 0 {
            event["text"] = Value::from(key);
        }
        self.call("Input.dispatchKeyEvent", event.clone())?;
        event["type"] = Value::from("keyUp");
        let released = self.call("Input.dispatchKeyEvent", event);
        released.map(|_| ())
    }

    /// Sets the size of the page in pixels.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn resize(&mut self, width: u32, height: u32) -> Result<()> {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let set = self.call("Emulation.setDeviceMetricsOverride", size);
        set.map(|_| ())
    }

    /// Sets what the system prefers: `light` or `dark`.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn prefer(&mut self, scheme: &str) -> Result<()> {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        let set = self.call("Emulation.setEmulatedMedia", json!({"features": [feature]}));
        set.map(|_| ())
    }
}

fn arguments() -> Vec<&'static str> {
    let mut arguments = vec![
        "--headless=new",
        "--remote-debugging-pipe",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "about:blank",
    ];
    // Chromium's sandbox refuses to run as root.
    if we_are_root() {
        arguments.push("--no-sandbox");
    }
    arguments
}

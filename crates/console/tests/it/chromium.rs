//! A real browser: Chromium without a window, driven by its own protocol over a pipe (`--remote-debugging-pipe`).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::PATIENCE;

/// One tab of a browser of its own; both end when dropped.
pub struct Tab {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    last: u64,
    /// Events that came between answers.
    pub events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Tab {
    /// Opens an empty page; none where there is no Chromium.
    pub fn open() -> Option<Self> {
        let program = ["chromium", "chromium-browser"].into_iter().find(|name| {
            let version = Command::new(name).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        });
        let Some(program) = program else {
            testpeer::skip::missing("Chromium (apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The pipe is descriptors 3 and 4 of the browser.
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                program,
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut tab = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            session: String::new(),
            last: 0,
            events: Vec::new(),
            _profile: profile,
        };
        let target = tab.ask("Target.createTarget", json!({"url": "about:blank"}));
        let attached = tab.ask(
            "Target.attachToTarget",
            json!({"targetId": target["targetId"], "flatten": true}),
        );
        tab.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Network", "Log"] {
            tab.ask(&format!("{domain}.enable"), json!({}));
        }
        Some(tab)
    }

    /// The result of a command.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.exchange(method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn exchange(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.last {
                return match answer.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(answer["result"].take()),
                };
            }
            self.events.push(answer);
        }
    }

    /// The value of an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let value = self.evaluated(expression);
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    fn evaluated(&mut self, expression: &str) -> Result<Value, Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.exchange("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(_) => Err(answer),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until an expression is true. It may fail before: the page is loaded meanwhile.
    pub fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.evaluated(expression);
            if value == Ok(true.into()) {
                return;
            }
            if Instant::now() > end {
                let page = self.evaluated("document.body.innerText");
                panic!("waited for {expression}, it is {value:?}:\n{page:?}");
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    pub fn go(&mut self, url: &str) {
        self.ask("Page.navigate", json!({"url": url}));
    }

    /// Width of the window in pixels, and the colour scheme.
    pub fn look(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", media);
    }

    /// Types and presses keys where the focus is.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            _ => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event = json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// The whole page as a PNG below `SIGNALBOX_SCREENSHOTS`, for people; nothing where that is not set.
    pub fn screenshot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SIGNALBOX_SCREENSHOTS") else {
            return;
        };
        let taken = self.ask("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        let path = std::path::Path::new(&folder).join(format!("{name}.png.base64"));
        std::fs::write(path, taken["data"].as_str().unwrap()).unwrap();
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! `tessera view` over HTTP, and its page in a browser where there is one.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tessera_tests::program::{binary, root, run_in};

const PROGRAM: &str = "def f(x: Tensor[N, f32]) -> Tensor[N, f32]:
    return op.exp(x) + 1.0

print(f(op.ones((4,))).sum())
";

/// A server that ends with the test.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(dir: &Path, args: &[&str]) -> Served {
    let mut child = Command::new(binary())
        .args(["view", "--no-open"])
        .args(args)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}"));
    let mut url = String::new();
    let out = child.stdout.take().unwrap_or_else(|| panic!("piped"));
    BufReader::new(out).read_line(&mut url).unwrap_or_else(|e| panic!("{e}"));
    Served { child, url: url.trim().to_owned() }
}

impl Served {
    fn host(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().unwrap_or_default()
    }

    fn token(&self) -> &str {
        self.url.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// Status and body of a request.
    fn ask(&self, method: &str, path: &str, host: &str) -> (u32, String) {
        let mut stream = TcpStream::connect(self.host()).unwrap_or_else(|e| panic!("{e}"));
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap_or_else(|e| panic!("{e}"));
        let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, text)
    }

    fn get(&self, what: &str) -> Value {
        let mut stream = TcpStream::connect(self.host()).unwrap_or_else(|e| panic!("{e}"));
        let (token, host) = (self.token(), self.host());
        // Of version 1.0 the body comes in one piece.
        let request = format!("GET /{token}/{what} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap_or_else(|e| panic!("{e}"));
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

fn folder(program: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("main.tsr"), program).unwrap_or_else(|e| panic!("{e}"));
    dir
}

#[test]
fn every_address_answers_this_machine_alone() {
    let dir = folder(PROGRAM);
    let s = serve(dir.path(), &["main.tsr"]);
    let program = s.get("program");
    assert_eq!((&program["checks"], &program["functions"][0]["name"]), (&true.into(), &"f".into()), "{program}");
    let graph = s.get("graph?function=0");
    let ops: Vec<&str> =
        graph["run"]["nodes"].as_array().into_iter().flatten().filter_map(|n| n["op"].as_str()).collect();
    assert!(ops.contains(&"exp"), "{graph}");
    assert_eq!(graph["run"]["groups"].as_array().map(Vec::len), Some(1), "{graph}");
    for form in ["ast", "core", "host", "graph", "kernels", "schedule", "tile"] {
        let text = s.get(&format!("ir?function=0&form={form}"));
        assert!(text["text"].as_str().is_some_and(|t| !t.is_empty()), "{form}: {text}");
    }
    let page = format!("/{}/", s.token());
    let status = |method: &str, path: &str, host: &str| s.ask(method, path, host).0;
    assert_eq!(status("GET", &page, s.host()), 200);
    assert_eq!(status("GET", &page, "example.com"), 403);
    assert_eq!(status("POST", &page, s.host()), 405);
    assert_eq!(status("GET", "/", s.host()), 404);
    assert_eq!(status("GET", &format!("{page}../main.tsr"), s.host()), 404);
    assert_eq!(status("GET", &format!("{page}graph?function=x"), s.host()), 404);
}

#[test]
fn an_edited_file_is_read_again_and_may_be_wrong() {
    let dir = folder("print(x)\n");
    let s = serve(dir.path(), &["main.tsr"]);
    assert_eq!(s.get("program")["diagnostics"][0]["code"], "E0101");
    std::fs::write(dir.path().join("main.tsr"), PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(s.get("state")["version"], 2);
    assert_eq!(s.get("program")["checks"], true);
}

#[test]
fn a_run_shows_kernels_by_share() {
    // Large enough for a kernel: what is small and runs once is interpreted.
    let dir = folder("x = op.ones((512, 512))\nprint((x @ x).sum())\n");
    let s = serve(dir.path(), &["--profile", "main.tsr"]);
    let begun = Instant::now();
    while s.get("state")["run"] == 0 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let profile = s.get("profile");
    assert_eq!(profile["ok"], true, "{profile}");
    let rows = profile["profile"]["profile"].as_array().cloned().unwrap_or_default();
    let shares: Vec<f64> = rows.iter().filter_map(|r| r["share"].as_f64()).collect();
    assert!(!shares.is_empty() && shares.is_sorted_by(|a, b| a >= b), "{profile}");
    // What the roofline and the time line are drawn from.
    let product = rows.iter().find(|r| r["kernel"] == "dot").unwrap_or_else(|| panic!("{profile}"));
    assert_eq!(product["work"]["flops"], 2 * 512 * 512 * 512, "{profile}");
    assert!(product["work"]["bytes"].as_u64() >= Some(3 * 4 * 512 * 512), "{profile}");
    let steps = profile["profile"]["steps"].as_array().cloned().unwrap_or_default();
    assert!(!steps.is_empty() && steps.is_sorted_by(|a, b| a[1].as_f64() <= b[1].as_f64()), "{profile}");
    assert_eq!(profile["profile"]["steps_left_out"], 0, "{profile}");
    let [flops, bytes] = ["flops", "bytes"].map(|what| profile["roof"][what].as_f64().unwrap_or_default());
    // A core does neither in less than a second.
    assert!(flops > 1e9 && bytes > 1e8, "{profile}");
}

#[test]
fn what_cannot_be_served_is_told() {
    let dir = folder(PROGRAM);
    let s = serve(dir.path(), &["main.tsr"]);
    let port = s.host().rsplit(':').next().unwrap_or_default().to_owned();
    for args in
        [&["view", "--no-open", "none.tsr"][..], &["view", "--no-open", "--port", &port, "main.tsr"], &["view", "-"]]
    {
        let r = run_in(dir.path(), args, "").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((r.code, r.err.matches("error[").count()), (1, 1), "{}", r.err);
    }
}

#[test]
fn a_browser_shows_the_graph() {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there =
        |n: &&&str| Command::new(n).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let Some(browser) = names.iter().find(there) else {
        eprintln!("not run: there is no Chromium here");
        return;
    };
    let s = serve(&root(), &["examples/digits.tsr"]);
    let profile = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let run = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(&s.url)
        .output()
        .unwrap_or_else(|e| panic!("{e}"));
    let dom = String::from_utf8_lossy(&run.stdout);
    assert!(dom.contains("regression_step") && dom.contains("class=\"node") && dom.contains("data-place"), "{dom}");
}

//! An int is an int, however large: every int parameter of every operator and function, in slices, indices,
//! constructors and readers of files, gives a result or one diagnostic with a code, within seconds and within the memory
//! that there is; and says the same of a literal and of a number that only the run knows.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_tests::parameters::{Open, SETUP, open};
use tessera_tests::program::binary;

/// The ints, as programs write them.
const INTS: &[(&str, &str)] = &[
    ("9223372036854775807", "9223372036854775807"),
    ("(-9223372036854775807 - 1)", "-9223372036854775808"),
    ("4611686018427387904", "4611686018427387904"),
    ("(-4611686018427387904)", "-4611686018427387904"),
    ("2147483648", "2147483648"),
    ("(-2147483648)", "-2147483648"),
    ("4294967297", "4294967297"),
    ("0", "0"),
    ("(-1)", "-1"),
    ("1", "1"),
];
/// What a session may take, in KiB of addresses: allocations beyond it fail.
const ADDRESSES: u64 = 6 << 20;
/// Time without a word from the program after which it counts as hanging.
const SILENCE: Duration = Duration::from_secs(10);
/// Inputs of one session: what it compiled stays there.
const INPUTS: usize = 1000;
/// Begins the line of a result.
const MARK: char = '\u{1}';

/// What was said to one input.
#[derive(Default, Clone)]
struct Said {
    value: Option<String>,
    codes: Vec<String>,
    messages: Vec<String>,
    /// The program ended there.
    end: Option<String>,
}

impl Said {
    fn text(&self) -> String {
        match (&self.end, &self.value) {
            (Some(end), _) => end.clone(),
            (_, Some(v)) if self.codes.is_empty() => v.trim().to_owned(),
            _ => self.messages.join("; "),
        }
    }
}

/// The outcome of each input, in sessions that go on behind an input that ends one.
fn run(inputs: &[String], args: &[&str]) -> Vec<Said> {
    let mut said = vec![];
    while said.len() < inputs.len() {
        let rest = &inputs[said.len()..(said.len() + INPUTS).min(inputs.len())];
        let part = session(rest, args);
        assert!(!part.is_empty(), "the session starts");
        said.extend(part);
    }
    said
}

/// The outcomes up to the end of a session; the last one tells why it ended.
fn session(inputs: &[String], args: &[&str]) -> Vec<Said> {
    let dir = tempfile::tempdir().expect("a folder for the session");
    let mut text = SETUP.to_owned();
    for (n, (_, int)) in INTS.iter().enumerate() {
        text += &format!("n{n} = int(\"{int}\")\n");
    }
    let before = text.lines().count();
    text.extend(inputs.iter().map(String::as_str));
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"")])
        .arg(binary())
        .args(["repl", "--json", "--threads", "1"])
        .args(args)
        .current_dir(dir.path())
        .env("TESSERA_MACHINE", "reference")
        .env("TESSERA_CACHE", std::env::temp_dir().join("tessera-test-cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the session starts");
    let heard = Arc::new(Mutex::new(Instant::now()));
    let mut stdin = child.stdin.take().expect("a pipe");
    let feed = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let out = reader(child.stdout.take().expect("a pipe"), heard.clone());
    let err = reader(child.stderr.take().expect("a pipe"), heard.clone());
    let end = loop {
        if let Some(status) = child.try_wait().expect("the session can be waited for") {
            break (!matches!(status.code(), Some(0 | 1))).then(|| format!("ended with {status}"));
        }
        if heard.lock().unwrap_or_else(|e| e.into_inner()).elapsed() > SILENCE {
            child.kill().expect("the session can be stopped");
            child.wait().expect("the session can be waited for");
            break Some(format!("said nothing for {SILENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let _ = feed.join();
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let mut said = vec![Said::default(); inputs.len()];
    let mut last = 0;
    let mut other = String::new();
    for part in out.split(MARK).skip(1) {
        let Some((n, value)) = part.split_once(' ') else { continue };
        let Ok(n) = n.parse::<usize>() else { continue };
        // Marks count inputs over all sessions.
        let first: usize = mark_of(&inputs[0]);
        said[n - first].value = Some(value.to_owned());
        last = last.max(n - first + 1);
    }
    for line in err.lines() {
        let Ok(d) = serde_json::from_str::<serde_json::Value>(line) else {
            other += line;
            other += "\n";
            continue;
        };
        if d["severity"] != "error" {
            continue;
        }
        let file = d["span"]["file"].as_str().unwrap_or_default();
        let n = file.strip_prefix("<input ").and_then(|f| f.strip_suffix('>')).and_then(|f| f.parse::<usize>().ok());
        let at = n.map_or(last, |n| n - 1 - before);
        let code = d["code"].as_str().unwrap_or_default().to_owned();
        said[at].messages.push(format!("{code} {}", d["message"].as_str().unwrap_or_default()));
        said[at].codes.push(code);
        last = last.max(at + 1);
    }
    if let Some(end) = end {
        said.truncate(last + 1);
        if let Some(s) = said.last_mut() {
            s.end = Some(format!("{end} {}", other.trim()));
        }
    }
    said
}

fn mark_of(input: &str) -> usize {
    let behind = input.split("\\x01").nth(1).unwrap_or_default();
    behind.split('"').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn reader(mut pipe: impl Read + Send + 'static, heard: Arc<Mutex<Instant>>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut all, mut bytes) = (vec![], vec![0; 1 << 16]);
        while let Ok(n) = pipe.read(&mut bytes) {
            if n == 0 {
                break;
            }
            all.extend_from_slice(&bytes[..n]);
            *heard.lock().unwrap_or_else(|e| e.into_inner()) = Instant::now();
        }
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// What is wrong with the outcomes of a literal and of the number at run time. A number that has to be known before the
/// run may be refused there, and -1 stands for an open size only where the program says so.
fn wrong(literal: &Said, run: &Said, opens: bool) -> Option<&'static str> {
    for s in [literal, run] {
        if s.end.is_some() {
            return Some("the program ends");
        }
        if s.codes.iter().any(|c| c.starts_with("E09") || c == "E0603") {
            return Some("an error of the compiler");
        }
        if s.codes.len() > 1 {
            return Some("more than one diagnostic");
        }
        if s.codes.is_empty() && s.value.is_none() {
            return Some("neither a result nor a diagnostic");
        }
    }
    let told = |s: &Said| s.codes.first().cloned();
    match (told(literal), told(run)) {
        (None, None) if literal.value != run.value => Some("different values"),
        (None, Some(code)) if opens && code == "E0711" => None,
        (None, Some(code)) if !["E0213", "E0211"].contains(&code.as_str()) => Some("only the literal has a value"),
        (Some(_), None) => Some("only the number at run time has a value"),
        _ => None,
    }
}

#[test]
fn ints_of_any_size() {
    let start = Instant::now();
    let calls = open();
    let mut inputs = vec![];
    for call in &calls {
        for (n, (literal, _)) in INTS.iter().enumerate() {
            for int in [literal.to_string(), format!("n{n}")] {
                inputs.push(call.with(&format!("\\x01{}", inputs.len()), &int));
            }
        }
    }
    let near = inputs.len();
    for call in calls.iter().filter(|c| c.saturates) {
        for int in ["1000", "(-1000)"] {
            inputs.push(call.with(&format!("\\x01{}", inputs.len()), int));
        }
    }
    let half = inputs.len() / 4 * 2;
    let bound = ["--memory", "256MiB"];
    let said: Vec<Said> = std::thread::scope(|s| {
        let first = s.spawn(|| run(&inputs[..half], &bound));
        let second = run(&inputs[half..], &bound);
        let mut all = first.join().expect("the thread ends");
        all.extend(second);
        all
    });
    if let Ok(path) = std::env::var("DUMP") {
        let mut text = String::new();
        for (i, s) in inputs.iter().zip(&said) {
            text += &format!("{} => {}\n", i.trim(), s.text().replace('\n', " | "));
        }
        std::fs::write(path, text).unwrap();
    }
    let mut failures = vec![];
    let mut accepted: BTreeMap<&str, bool> = BTreeMap::new();
    for (n, pair) in said[..near].chunks(2).enumerate() {
        let call: &Open = &calls[n / INTS.len()];
        *accepted.entry(&call.of).or_default() |= pair[0].codes.is_empty();
        let opens = INTS[n % INTS.len()].1 == "-1" && (call.call.contains("reshape") || call.call.contains("expand"));
        if let Some(why) = wrong(&pair[0], &pair[1], opens) {
            let input = inputs[2 * n].trim();
            failures.push(format!("{why}: {input}\n    {}\n    {}", pair[0].text(), pair[1].text()));
        }
    }
    for (call, near) in calls.iter().enumerate().filter(|(_, c)| c.saturates).zip(said[near..].chunks(2)) {
        for (n, (_, int)) in INTS.iter().enumerate().filter(|(_, (_, int))| int.len() > 4) {
            let (index, like) = ((call.0 * INTS.len() + n) * 2, &near[usize::from(int.starts_with('-'))]);
            for at in [index, index + 1] {
                let said = &said[at];
                let unknown = at > index && said.codes.first().is_some_and(|c| c == "E0213" || c == "E0211");
                if !unknown && said.value != like.value {
                    let input = inputs[at].trim();
                    failures.push(format!("not as ±1000: {input}\n    {}\n    {}", said.text(), like.text()));
                }
            }
        }
    }
    let never = accepted.iter().filter(|(_, ok)| !**ok).map(|(of, _)| format!("{of}: no int has a result"));
    failures.extend(never);
    println!("{} calls, {} inputs, in {:.1} s", calls.len(), inputs.len(), start.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

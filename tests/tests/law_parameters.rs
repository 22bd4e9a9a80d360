//! An int is an int, however large: every int parameter of every operator and function, in slices, indices,
//! constructors and readers of files, gives a result or one diagnostic with a code, within seconds and within the memory
//! that there is; and says the same of a literal and of a number that only the run knows.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
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
/// What a region may take.
const BOUND: &[&str] = &["--memory", "256MiB"];
/// What is said of a number that has to be known before the run.
const EARLY: &[&str] = &["E0213", "E0211"];
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
    let end = wait(&mut child, &heard);
    let _ = feed.join();
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    sorted(inputs, before, &out, &err, end)
}

/// Why a session ended before its input did.
fn wait(child: &mut Child, heard: &Mutex<Instant>) -> Option<String> {
    loop {
        if let Some(status) = child.try_wait().expect("the session can be waited for") {
            return (!matches!(status.code(), Some(0 | 1))).then(|| format!("ended with {status}"));
        }
        if heard.lock().unwrap_or_else(|e| e.into_inner()).elapsed() > SILENCE {
            child.kill().expect("the session can be stopped");
            child.wait().expect("the session can be waited for");
            return Some(format!("said nothing for {SILENCE:?}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What belongs to which input: results have marks, diagnostics the number of the input, which counts those `before` too.
fn sorted(inputs: &[String], before: usize, out: &str, err: &str, end: Option<String>) -> Vec<Said> {
    let mut said = vec![Said::default(); inputs.len()];
    let (mut last, mut other) = (0, String::new());
    // Marks count inputs over all sessions.
    let first = mark_of(&inputs[0]);
    for part in out.split(MARK).skip(1) {
        let Some((n, value)) = part.split_once(' ') else { continue };
        let Ok(n) = n.parse::<usize>() else { continue };
        said[n - first].value = Some(value.to_owned());
        last = last.max(n - first + 1);
    }
    for line in err.lines() {
        let Ok(d) = serde_json::from_str::<serde_json::Value>(line) else {
            other += &format!("{line}\n");
            continue;
        };
        if d["severity"] != "error" {
            continue;
        }
        let file = d["span"]["file"].as_str().unwrap_or_default();
        let n = file.strip_prefix("<input ").and_then(|f| f.strip_suffix('>')).and_then(|f| f.parse::<usize>().ok());
        let at = n.and_then(|n| n.checked_sub(before + 1)).unwrap_or(last).min(inputs.len() - 1);
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
        (None, Some(code)) if !EARLY.contains(&code.as_str()) => Some("only the literal has a value"),
        (Some(_), None) => Some("only the number at run time has a value"),
        _ => None,
    }
}

/// The outcomes of the calls: of each with each int as a literal and as a number of the run, and then, of those where an
/// int far outside means what one just outside does, with 1000 and -1000.
struct Outcomes {
    calls: Vec<Open>,
    inputs: Vec<String>,
    said: Vec<Said>,
}

impl Outcomes {
    fn new() -> Outcomes {
        let calls = open();
        let mut inputs = vec![];
        let mut add = |call: &Open, int: &str| inputs.push(call.with(&format!("\\x01{}", inputs.len()), int));
        for call in &calls {
            for (n, (literal, _)) in INTS.iter().enumerate() {
                add(call, literal);
                add(call, &format!("n{n}"));
            }
        }
        for call in calls.iter().filter(|c| c.saturates) {
            ["1000", "(-1000)"].iter().for_each(|int| add(call, int));
        }
        let (first, second) = inputs.split_at(inputs.len() / 4 * 2);
        let said = std::thread::scope(|s| {
            let first = s.spawn(|| run(first, BOUND));
            let second = run(second, BOUND);
            [first.join().expect("the thread ends"), second].concat()
        });
        Outcomes { calls, inputs, said }
    }

    /// The input and what was said of call `call` with int `int`, written out or known at run time.
    fn at(&self, call: usize, int: usize, late: bool) -> (&str, &Said) {
        let at = (call * INTS.len() + int) * 2 + usize::from(late);
        (self.inputs[at].trim(), &self.said[at])
    }

    /// Calls that end the program, and those where a literal and a number of the run differ.
    fn differing(&self) -> Vec<String> {
        let mut failures = vec![];
        for (c, call) in self.calls.iter().enumerate() {
            let shape = call.call.contains("reshape") || call.call.contains("expand");
            for (n, (_, int)) in INTS.iter().enumerate() {
                let ((input, literal), (_, late)) = (self.at(c, n, false), self.at(c, n, true));
                if let Some(why) = wrong(literal, late, shape && *int == "-1") {
                    failures.push(format!("{why}: {input}\n    {}\n    {}", literal.text(), late.text()));
                }
            }
        }
        failures
    }

    /// Large ints that do not mean what 1000 or -1000 does.
    fn not_saturating(&self) -> Vec<String> {
        let mut failures = vec![];
        let near = self.said[self.calls.len() * INTS.len() * 2..].chunks(2);
        for ((c, _), near) in self.calls.iter().enumerate().filter(|(_, c)| c.saturates).zip(near) {
            for (n, (_, int)) in INTS.iter().enumerate().filter(|(_, (_, int))| int.len() > 4) {
                let like = &near[usize::from(int.starts_with('-'))];
                for late in [false, true] {
                    let (input, said) = self.at(c, n, late);
                    let unknown = late && said.codes.first().is_some_and(|c| EARLY.contains(&c.as_str()));
                    if !unknown && said.value != like.value {
                        failures.push(format!("not as ±1000: {input}\n    {}\n    {}", said.text(), like.text()));
                    }
                }
            }
        }
        failures
    }

    /// Parameters for which no int has a result: a call of the table that never makes sense shows nothing.
    fn never(&self) -> Vec<String> {
        let mut accepted: BTreeMap<&str, bool> = BTreeMap::new();
        for (c, call) in self.calls.iter().enumerate() {
            let some = (0..INTS.len()).any(|n| self.at(c, n, false).1.codes.is_empty());
            *accepted.entry(&call.of).or_default() |= some;
        }
        let never = accepted.iter().filter(|(_, ok)| !**ok);
        never.map(|(of, _)| format!("{of}: no int has a result; see `tessera_tests::parameters`")).collect()
    }
}

#[test]
fn ints_of_any_size() {
    let start = Instant::now();
    let outcomes = Outcomes::new();
    let failures = [outcomes.differing(), outcomes.not_saturating(), outcomes.never()].concat();
    let (calls, inputs) = (outcomes.calls.len(), outcomes.inputs.len());
    println!("{calls} calls, {inputs} inputs, in {:.1} s", start.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

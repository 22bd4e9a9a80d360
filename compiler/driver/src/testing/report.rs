//! What came of the cases: in words, as JSON, as JUnit XML.

use super::run::Failure;
use crate::program::out;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tessera_runtime::fault::Fault;
use tessera_runtime::io::files::{write_atomically, write_fault};

/// What came of a case.
pub struct Done {
    pub name: String,
    /// What is told beside the name in words.
    pub detail: String,
    pub file: String,
    /// Where the case begins.
    pub line: usize,
    pub time: Duration,
    /// Diagnostics, in words.
    pub said: String,
    pub failure: Option<Failure>,
    /// It stands for a file that cannot be tested, of which all is said already.
    pub broken: bool,
}

impl Done {
    /// Where it is to be looked at.
    fn place(&self) -> (&str, usize) {
        (&self.file, self.failure.as_ref().map_or(self.line, |f| f.line))
    }

    /// Why it failed, without the diagnostics.
    fn why(&self) -> String {
        let Some(Failure { why, outputs, .. }) = &self.failure else { return String::new() };
        match outputs {
            Some((e, p)) => format!("expected\n{}\nprinted\n{}", indented(e), indented(p)),
            None => why.trim_end().to_owned(),
        }
    }

    /// All that is known of it, in words.
    fn message(&self) -> String {
        format!("{}\n{}", self.why(), self.said).trim().to_owned()
    }
}

/// The results so far.
pub struct Report {
    json: bool,
    done: Vec<Done>,
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|l| format!("        {l}\n")).collect::<String>().trim_end().to_owned()
}

impl Report {
    pub fn new(json: bool) -> Report {
        Report { json, done: vec![] }
    }

    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    pub fn failed(&self) -> bool {
        self.done.iter().any(|d| d.failure.is_some())
    }

    /// A folder that cannot be read, which was told.
    pub fn unreadable(&mut self, why: String) {
        let failure = Some(Failure::new(0, why));
        let [detail, file, said] = [(); 3].map(|()| String::new());
        let name = "the folder".into();
        self.case(Done { name, detail, file, line: 0, time: Duration::ZERO, said, failure, broken: true });
    }

    /// Takes a result, and tells it.
    pub fn case(&mut self, done: Done) {
        if self.json {
            out(&format!("{}\n", json_of(&done)));
        } else {
            eprint!("{}", done.said);
            let (file, line) = done.place();
            match &done.failure {
                None => out(&format!("ok      {}{}\n", done.name, done.detail)),
                // All of it was told as diagnostics.
                Some(_) if done.broken => {}
                Some(_) => out(&format!("FAILED  {} ({file}:{line})\n{}\n", done.name, indented(&done.why()))),
            }
        }
        self.done.push(done);
    }

    /// `3 passed, 1 failed in 0.12 s`.
    pub fn summary(&self, time: Duration) -> String {
        let failed = self.done.iter().filter(|d| d.failure.is_some()).count();
        format!("{} passed, {failed} failed in {:.2} s\n", self.done.len() - failed, time.as_secs_f64())
    }

    /// Writes the results as JUnit XML: a suite for each file.
    pub fn junit(&self, path: &Path, time: Duration) -> Result<(), Fault> {
        let mut report = quick_junit::Report::new("tessera test");
        report.set_time(time);
        let mut suites: Vec<TestSuite> = vec![];
        for done in &self.done {
            if suites.last().is_none_or(|s| s.name.as_str() != done.file) {
                suites.push(TestSuite::new(done.file.as_str()));
            }
            let (file, line) = done.place();
            let mut status = TestCaseStatus::success();
            if let Some(failure) = &done.failure {
                status = TestCaseStatus::non_success(if done.broken {
                    NonSuccessKind::Error
                } else {
                    NonSuccessKind::Failure
                });
                let short = if failure.why.is_empty() { "it printed something else" } else { &failure.why };
                status.set_message(short).set_description(format!("{file}:{line}\n{}", done.message()));
            }
            let mut case = TestCase::new(done.name.as_str(), status);
            case.set_classname(done.file.as_str()).set_time(done.time);
            case.extra.insert("file".into(), file.into());
            case.extra.insert("line".into(), line.to_string().into());
            if let Some(suite) = suites.last_mut() {
                suite.add_test_case(case);
            }
        }
        report.add_test_suites(suites);
        write_atomically(path, |to| report.serialize(to).map_err(|e| write_fault(path, &std::io::Error::other(e))))
    }
}

fn json_of(done: &Done) -> serde_json::Value {
    let outputs = done.failure.as_ref().and_then(|f| f.outputs.as_ref());
    let (file, line) = done.place();
    json!({
        "name": done.name,
        "file": file,
        "line": line,
        "ok": done.failure.is_none(),
        "seconds": (done.time.as_secs_f64() * 1e6).round() / 1e6,
        "expected": outputs.map(|o| &o.0),
        "printed": outputs.map(|o| &o.1),
        "message": done.message(),
    })
}

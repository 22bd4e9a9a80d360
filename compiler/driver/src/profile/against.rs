//! What changed since an earlier profile.

use super::shown;
use crate::graph_facts::Place;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use tessera_base::{Code, Diagnostic, Span};

/// A change of less is no change.
const LEAST: f64 = 0.02;

/// What this reads of a profile.
#[derive(Deserialize, Debug)]
pub struct Saved {
    profile: Vec<Kernel>,
    stages: Vec<Stage>,
    whole: f64,
}

#[derive(Deserialize, Debug)]
struct Kernel {
    kernel: String,
    place: Option<Place>,
    seconds: f64,
    runs: u64,
}

#[derive(Deserialize, Debug)]
struct Stage {
    stage: String,
    seconds: f64,
}

/// An earlier profile.
///
/// # Errors
/// E0706 where it cannot be read, E0707 where it is no profile.
pub fn read(old: &Path) -> Result<Saved, Box<Diagnostic>> {
    kept(old, "profile", |_: &Saved| None)
}

/// What a command wrote with `--save`, `what` being the command. `wrong` says what no such file has.
///
/// # Errors
/// E0706 where it cannot be read, E0707 where it is something else.
pub fn kept<T: DeserializeOwned>(
    path: &Path,
    what: &str,
    wrong: impl Fn(&T) -> Option<String>,
) -> Result<T, Box<Diagnostic>> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|e| Box::new(Diagnostic::new(Code::E0706, Span::NONE, format!("cannot read `{name}`: {e}"))))?;
    let none = |why: String| {
        let d =
            Diagnostic::new(Code::E0707, Span::NONE, format!("`{name}` was not written by `tessera {what}`: {why}"));
        Box::new(d.help(format!("`tessera {what} --save FILE.json` writes it")))
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|e| none(e.to_string()))?;
    match value["schema"].as_u64() {
        Some(1) => {}
        None => return Err(none("it has no schema".into())),
        Some(other) => return Err(none(format!("its schema is {other}, and this tool knows 1"))),
    }
    let saved = serde_json::from_value(value).map_err(|e| none(e.to_string()))?;
    wrong(&saved).map_or(Ok(saved), |why| Err(none(why)))
}

/// The rows of two profiles side by side, those first whose time changed the most. A kernel is the same where its name, file
/// and place among kernels of that name there are: lines may have moved.
pub fn against(before: &Saved, new: &Value) -> String {
    let after = Saved::deserialize(new).expect("a profile has the form that this reads");
    table(before, &after)
}

/// Seconds and runs before and after, by name.
type Pairs = BTreeMap<String, [Option<(f64, u64)>; 2]>;

fn table(before: &Saved, after: &Saved) -> String {
    let mut pairs = Pairs::new();
    for (side, saved) in [before, after].into_iter().enumerate() {
        rows(saved, side, &mut pairs);
    }
    let seconds = |one: &Option<(f64, u64)>| one.map_or(0.0, |(s, _)| s);
    let mut rows: Vec<(&String, &[Option<(f64, u64)>; 2])> = pairs.iter().collect();
    rows.sort_by(|(_, a), (_, b)| {
        let change = |pair: &[Option<(f64, u64)>; 2]| (seconds(&pair[1]) - seconds(&pair[0])).abs();
        change(b).total_cmp(&change(a))
    });
    let least = LEAST * before.whole.max(after.whole);
    let mut out = format!("{:>10}  {:>10}  {:>7}  changed\n", "before", "after", "times");
    for (name, pair) in rows {
        let [b, a] = [seconds(&pair[0]), seconds(&pair[1])];
        if (b - a).abs() < least {
            continue;
        }
        let runs = match pair {
            [Some((_, b)), Some((_, a))] if b != a => format!(", {b} runs before and {a} after"),
            _ => String::new(),
        };
        line(&mut out, pair[0].map(|p| p.0), pair[1].map(|p| p.0), &format!("{name}{runs}"));
    }
    line(&mut out, Some(before.whole), Some(after.whole), "from start to end");
    out
}

fn line(out: &mut String, before: Option<f64>, after: Option<f64>, name: &str) {
    let time =
        |s: Option<f64>| s.and_then(|s| Duration::try_from_secs_f64(s).ok()).map_or_else(|| "-".to_owned(), shown);
    let times = match (before, after) {
        (Some(b), Some(a)) if b > 0.0 => format!("{:.2}", a / b),
        _ => "-".to_owned(),
    };
    let _ = writeln!(out, "{:>10}  {:>10}  {times:>7}  {name}", time(before), time(after));
}

fn rows(saved: &Saved, side: usize, pairs: &mut Pairs) {
    // By the order in the text, so that kernels of one name in one file keep their numbers.
    let mut kernels: Vec<&Kernel> = saved.profile.iter().collect();
    kernels.sort_by(|a, b| a.place.cmp(&b.place));
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    for kernel in kernels {
        let file = kernel.place.as_ref().map_or("", |p| p.file.rsplit('/').next().unwrap_or(&p.file));
        let name = format!("{} {file}", kernel.kernel);
        let count = met.entry(name.clone()).or_default();
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name} ({count})") };
        pairs.entry(name).or_default()[side] = Some((kernel.seconds, kernel.runs));
    }
    for stage in &saved.stages {
        pairs.entry(stage.stage.clone()).or_default()[side] = Some((stage.seconds, 0));
    }
}

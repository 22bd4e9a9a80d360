//! Advice as it is shown and kept, and what edits brought.

use super::{Facts, Finding, Rule, findings};
use crate::cli::Advised;
use crate::graph_facts::Place;
use crate::profile::{kept, shown, unwritten};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use tessera_base::Diagnostic;
use tessera_resolve::source::SourceMap;
use tessera_runtime::io::replace::{Durability, replace};

/// Findings of a run, in seconds.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Saved {
    schema: u64,
    findings: Vec<Told>,
    /// The whole run.
    whole: f64,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Told {
    rule: Rule,
    place: Option<Place>,
    what: String,
    edit: String,
    cost: f64,
    gain: f64,
}

/// No run is longer.
const SECONDS_MAX: f64 = 1e9;

/// Earlier advice.
///
/// # Errors
/// E0706 where it cannot be read, E0707 where it is no advice.
pub fn read(path: &Path) -> Result<Saved, Box<Diagnostic>> {
    kept(path, "advise", |saved: &Saved| {
        let mut times = saved.findings.iter().flat_map(|f| [f.cost, f.gain]).chain([saved.whole]);
        times.find(|t| !(0.0..=SECONDS_MAX).contains(t)).map(|odd| format!("{odd} is no time"))
    })
}

/// Tells what is found, and keeps it where that was asked for.
///
/// # Errors
/// E0706 and E0707 for files that cannot be read or written.
pub fn report(facts: &Facts, asked: &Advised, json: bool, sources: &SourceMap) -> Result<(), Box<Diagnostic>> {
    let found = findings(facts);
    let told = |f: &Finding| Told {
        rule: f.rule,
        place: Place::of(f.span, sources),
        what: f.what.clone(),
        edit: f.edit.clone(),
        cost: f.cost.as_secs_f64(),
        gain: f.gain.as_secs_f64(),
    };
    let saved = Saved { schema: 1, findings: found.iter().map(told).collect(), whole: facts.whole.as_secs_f64() };
    let before = asked.against.as_deref().map(read).transpose()?;
    let brought = before.as_ref().map(|before| brought(before, &saved));
    match json {
        true => {
            let mut value = serde_json::to_value(&saved).expect("findings have a form");
            if let (Some(before), Some((_, gone))) = (&before, &brought) {
                value["before"] = before.whole.into();
                value["mended"] = serde_json::to_value(gone).expect("findings have a form");
            }
            eprintln!("{value}");
        }
        false => eprint!("{}{}", text(&saved), brought.map_or_else(String::new, |(text, _)| text)),
    }
    let Some(path) = &asked.save else { return Ok(()) };
    let text = serde_json::to_string_pretty(&saved).expect("findings have a form") + "\n";
    let written = replace(path, Durability::OnDisk, |e| e, |file| file.write_all(text.as_bytes()));
    written.map_err(|e| unwritten(path, &e))
}

fn seconds(n: f64) -> String {
    let sign = if n < 0.0 { "-" } else { "" };
    format!("{sign}{}", shown(Duration::try_from_secs_f64(n.abs()).unwrap_or(Duration::MAX)))
}

fn at(place: &Option<Place>) -> String {
    place.as_ref().map_or_else(
        || "somewhere".into(),
        |p| format!("{}:{}:{}", p.file.rsplit('/').next().unwrap_or(&p.file), p.line, p.column),
    )
}

fn text(saved: &Saved) -> String {
    let mut out = String::new();
    let percent = |n: f64| 100.0 * n / saved.whole.max(1e-12);
    for f in &saved.findings {
        let _ = writeln!(out, "{}: {}", at(&f.place), f.what);
        let _ = writeln!(
            out,
            "  costs  {} of {} ({:.0} %), measured",
            seconds(f.cost),
            seconds(saved.whole),
            percent(f.cost)
        );
        let _ = writeln!(out, "  edit   {}", f.edit);
        let _ = writeln!(out, "  gain   {} ({:.0} %), predicted", seconds(f.gain), percent(f.gain));
    }
    if saved.findings.is_empty() {
        let _ = writeln!(
            out,
            "nothing was found in {} that an edit would mend; `tessera profile` shows where the time goes",
            seconds(saved.whole)
        );
    }
    out
}

/// What the edits since then brought, in words, and the findings that are no longer there.
fn brought(before: &Saved, now: &Saved) -> (String, Vec<Told>) {
    let mut left: Vec<Rule> = now.findings.iter().map(|f| f.rule).collect();
    let mut gone = vec![];
    for f in &before.findings {
        match left.iter().position(|r| *r == f.rule) {
            Some(i) => _ = left.remove(i),
            None => gone.push(f.clone()),
        }
    }
    let mut out = String::new();
    for f in &gone {
        let _ = writeln!(out, "mended: {} {}, predicted to bring {}", f.rule.name(), at(&f.place), seconds(f.gain));
    }
    let predicted: f64 = gone.iter().map(|f| f.gain).sum();
    let (was, is) = (seconds(before.whole), seconds(now.whole));
    let measured = seconds(before.whole - now.whole);
    let _ = writeln!(out, "before {was}, now {is}: {measured} less measured, {} predicted", seconds(predicted));
    (out, gone)
}

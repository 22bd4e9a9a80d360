//! What a profile tells besides times, where that is asked for: what was counted, what is fused and what is not, who holds
//! memory.

use super::{by_time, line_of, source_line, title};
use crate::graph_facts::Place;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use tessera_base::{ItemId, Span};
use tessera_resolve::source::SourceMap;
use tessera_runtime::counters::{Counts, NAMES};
use tessera_runtime::fault::human_bytes;
use tessera_runtime::profile::{Held, Holder, Kind, Row};

/// Holders of memory that are shown.
const HOLDERS: usize = 12;

/// Why some things are not counted: a line for each reason.
pub fn uncounted(missing: &[(&'static str, String)]) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in missing {
        reasons.entry(why).or_default().push(name);
    }
    let line = |(why, names): (&&str, &Vec<&str>)| format!("not counted: {}: {why}\n", names.join(", "));
    reasons.iter().map(line).collect()
}

/// What was counted while kernels ran, those with the most time first; nothing where nothing was.
pub fn counted(rows: &[Row]) -> String {
    let rows: Vec<(&Row, Counts)> =
        by_time(rows, Kind::Step).into_iter().filter_map(|r| Some((r, r.counted?))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let there: Vec<usize> = (0..NAMES.len()).filter(|&i| rows.iter().any(|(_, c)| c[i].is_some())).collect();
    let mut out = String::new();
    let mut line = |cells: Vec<String>, name: &str| {
        let cells: Vec<String> =
            there.iter().zip(cells).map(|(&i, c)| format!("{c:>w$}", w = NAMES[i].len().max(7))).collect();
        let _ = writeln!(out, "{}  {name}", cells.join("  "));
    };
    line(there.iter().map(|&i| NAMES[i].to_owned()).collect(), "kernel");
    for (row, counts) in &rows {
        let cell = |&i: &usize| counts[i].map_or_else(|| "-".to_owned(), scaled);
        line(there.iter().map(cell).collect(), &row.name);
    }
    out
}

/// `1.2 M` of 1,234,567.
fn scaled(n: u64) -> String {
    match n {
        n if n >= 10_000_000_000 => format!("{:.1} G", n as f64 / 1e9),
        n if n >= 10_000_000 => format!("{:.1} M", n as f64 / 1e6),
        n if n >= 10_000 => format!("{:.1} k", n as f64 / 1e3),
        n => n.to_string(),
    }
}

/// The same for tools: by name, what was counted in all runs of a kernel.
pub fn counts(row: &Row) -> Option<Value> {
    let counts = row.counted?;
    let known = NAMES.iter().zip(counts).filter_map(|(name, n)| Some((name.replace(' ', "_"), n?.into())));
    Some(Value::Object(known.collect()))
}

/// Which operations are one kernel, and why it takes what it reads from memory, in the order in which kernels ran first.
pub fn fusion(rows: &[Row], sources: &SourceMap) -> String {
    let mut out = String::new();
    for row in rows.iter().filter(|r| r.kind == Kind::Step && r.about.iter().any(|a| !a.fused.is_empty())) {
        let _ = writeln!(out, "{}  {}  {}", row.name, title(row), source_line(row, sources));
        let Some(about) = row.about.iter().find(|a| !a.fused.is_empty()) else { continue };
        let _ = writeln!(out, "  together: {}", about.fused.join(", "));
        for why in &about.apart {
            let _ = writeln!(out, "  from memory: {why}");
        }
    }
    if out.is_empty() { out } else { format!("what is fused, and what is not\n{out}") }
}

/// The same for tools.
pub fn fused(row: &Row) -> Option<Value> {
    let about = row.about.iter().find(|a| !a.fused.is_empty())?;
    Some(json!({"together": about.fused.iter().map(|f| &**f).collect::<Vec<_>>(),
        "from_memory": about.apart.iter().map(|a| &**a).collect::<Vec<_>>()}))
}

/// Bytes by holder, the largest first; values of one line together.
fn holders(held: &Held, sources: &SourceMap) -> Vec<(Option<Place>, String, u64)> {
    let mut by_name: BTreeMap<(String, Option<Place>), u64> = BTreeMap::new();
    for (holder, bytes) in &held.values {
        let (name, place) = match holder {
            Holder::Inputs => ("what goes in".to_owned(), None),
            Holder::Results => ("results".to_owned(), None),
            Holder::Constants => ("constants".to_owned(), None),
            Holder::Value(o) => {
                let span = Span::new(ItemId(o.item), o.start as usize, o.end as usize);
                let place = Place::of(span, sources).map(|p| Place { column: 0, ..p });
                (line_of(span, sources), place)
            }
        };
        *by_name.entry((name, place)).or_default() += bytes;
    }
    let mut out: Vec<_> = by_name.into_iter().map(|((name, place), bytes)| (place, name, bytes)).collect();
    out.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    out
}

/// Who holds memory where the most of it is in use; nothing where that was not asked for.
pub fn fullest(held: Option<&Held>, sources: &SourceMap) -> String {
    let Some(held) = held else { return String::new() };
    let mut out = format!("memory was fullest with {} after {}\n", human_bytes(held.in_use), super::shown(held.at));
    let all = holders(held, sources);
    let known: u64 = all.iter().map(|(.., bytes)| bytes).sum();
    let mut line = |bytes: u64, name: &str| {
        let _ = writeln!(out, "{:>12}  {name}", human_bytes(bytes));
    };
    all.iter().take(HOLDERS).for_each(|(_, name, bytes)| line(*bytes, name));
    let rest: u64 = all.iter().skip(HOLDERS).map(|(.., bytes)| bytes).sum();
    if rest > 0 {
        line(rest, "other values between kernels");
    }
    line(held.in_use.saturating_sub(known), "other tensors of the program, room for kernels, and the tool");
    out
}

/// The same for tools.
pub fn held(held: Option<&Held>, sources: &SourceMap) -> Option<Value> {
    let held = held?;
    let one = |(place, what, bytes): (Option<Place>, String, u64)| json!({"what": what, "place": place.map(|p| json!({"file": p.file, "line": p.line})), "bytes": bytes});
    let values: Vec<Value> = holders(held, sources).into_iter().map(one).collect();
    Some(json!({"in_use": held.in_use, "seconds": held.at.as_secs_f64(), "holders": values}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_counted_is_one_line() {
        let may_not = "the system does not let programs count".to_owned();
        let missing = NAMES.map(|name| (name, may_not.clone()));
        let said = uncounted(&missing);
        assert_eq!(said, format!("not counted: {}: {may_not}\n", NAMES.join(", ")));
        assert_eq!(uncounted(&[]), "");
    }
}

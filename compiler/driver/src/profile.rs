//! `tessera profile`: where the time of a program went.

use crate::graph_facts::Place;
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tessera_base::{ItemId, Span};
use tessera_resolve::source::SourceMap;
use tessera_runtime::device::Taken;
use tessera_runtime::fault::human_bytes;
use tessera_runtime::profile::{Row, Work};
use tessera_runtime::traffic::Sent;

/// A table of one line for each kernel or function of the runtime, in the order in which they first
/// ran: its share of the time of all, how often it ran, the median of its times, and the place in
/// the program that it was made for. Only measured numbers; what `whole` has beyond their sum is
/// host code, checking and compilation.
pub fn table(rows: &[Row], whole: Duration, sources: &SourceMap) -> String {
    let total: Duration = rows.iter().flat_map(|r| &r.times).sum();
    let mut out = String::new();
    let seconds = total.as_secs_f64().max(1e-12);
    let width = rows.iter().map(|r| r.name.chars().count()).max().unwrap_or(6).clamp(6, 48);
    let _ = writeln!(out, "{:>6}  {:>7}  {:>10}  {:<width$}  place", "share", "runs", "median", "kernel");
    for row in rows {
        let time: Duration = row.times.iter().sum();
        let share = 100.0 * time.as_secs_f64() / seconds;
        let name: String = row.name.chars().take(width).collect();
        let (runs, median) = (row.times.len(), shown(median(&row.times)));
        let _ = writeln!(out, "{share:>5.1}%  {runs:>7}  {median:>10}  {name:<width$}  {}", source_line(row, sources));
    }
    let (total, whole) = (shown(total), shown(whole));
    let _ = writeln!(out, "kernels {total} of {whole} from start to end");
    out
}

/// Runs of steps that a profile for tools has one by one, at most.
const STEPS_MAX: usize = 4000;

/// What one run of a kernel computes and moves, and the time of it together with the kernels that prepare its operands; `None` where that
/// is not one number, as it is not for a kernel of several shapes.
fn work_of(row: &Row, rows: &[Row], work: &[Work]) -> Option<serde_json::Value> {
    let mut all = work.iter().filter(|w| w.origin == row.origin && w.names.last().is_some_and(|n| **n == row.name));
    let (one, None) = (all.next()?, all.next()) else { return None };
    let is_part = |r: &&Row| r.origin == row.origin && one.names.iter().any(|n| **n == r.name);
    let seconds: f64 = rows.iter().filter(is_part).map(|r| median(&r.times).as_secs_f64()).sum();
    let bytes = one.counts.bytes_read + one.counts.bytes_written;
    (seconds > 0.0).then(|| json!({"flops": one.counts.flops, "bytes": bytes, "seconds": seconds}))
}

/// The same for tools: one object, its rows by share. Seconds.
pub fn json(
    rows: &[Row],
    work: &[Work],
    sent: &[((Arc<str>, usize), Sent)],
    whole: Duration,
    sources: &SourceMap,
) -> serde_json::Value {
    let total: Duration = rows.iter().flat_map(|r| &r.times).sum();
    let time = |row: &Row| row.times.iter().sum::<Duration>();
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by_key(|r| std::cmp::Reverse(time(r)));
    let row = |row: &&Row| {
        let span = Span::new(ItemId(row.origin.item), row.origin.start as usize, row.origin.end as usize);
        json!({
            "kernel": row.name,
            "place": Place::of(span, sources),
            "runs": row.times.len(),
            "seconds": time(row).as_secs_f64(),
            "median": median(&row.times).as_secs_f64(),
            "share": time(row).as_secs_f64() / total.as_secs_f64().max(1e-12),
            "work": work_of(row, rows, work),
        })
    };
    let exchange = |((name, device), sent): &((Arc<str>, usize), Sent)| {
        let [time, waited, hidden] = [sent.time, sent.waited, sent.hidden].map(|t| t.as_secs_f64());
        let (runs, bytes) = (sent.runs, sent.bytes);
        json!({"name": **name, "device": device, "runs": runs, "bytes": bytes, "seconds": time, "waited": waited, "hidden": hidden})
    };
    let runs = |(at, row): (usize, &&Row)| {
        let each = row.begins.iter().zip(&row.times);
        each.map(|(begin, time)| (at, begin.as_secs_f64(), time.as_secs_f64())).collect::<Vec<_>>()
    };
    let mut steps: Vec<(usize, f64, f64)> = sorted.iter().enumerate().flat_map(runs).collect();
    steps.sort_by(|a, b| a.1.total_cmp(&b.1));
    let left_out = steps.len().saturating_sub(STEPS_MAX);
    steps.truncate(STEPS_MAX);
    json!({
        "schema": 1,
        "steps": steps,
        "steps_left_out": left_out,
        "exchanges": sent.iter().map(exchange).collect::<Vec<_>>(),
        "profile": sorted.iter().map(row).collect::<Vec<_>>(),
        "kernels": total.as_secs_f64(),
        "whole": whole.as_secs_f64(),
    })
}

/// What kernels take of a GPU; nothing where none ran on one.
pub fn taken(rows: &[Row]) -> String {
    let kernels: Vec<(&str, Taken)> = rows.iter().filter_map(|r| Some((r.name.as_str(), r.taken?))).collect();
    if kernels.is_empty() {
        return String::new();
    }
    let width = kernels.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(6).clamp(6, 48);
    let mut out = String::new();
    let mut line = |name: &str, cells: [&str; 5]| {
        let [points, registers, spilled, shared, warps] = cells;
        let name: String = name.chars().take(width).collect();
        let _ = writeln!(out, "{name:<width$}  {points:>10}  {registers:>9}  {spilled:>8}  {shared:>9}  {warps:>9}");
    };
    line("kernel", ["points", "registers", "spilled", "shared", "warps"]);
    for (name, t) in kernels {
        let [points, registers] = [t.points, t.registers.into()].map(|n| n.to_string());
        let [spilled, shared] = [t.spilled.into(), t.shared].map(human_bytes);
        line(name, [&points, &registers, &spilled, &shared, &format!("{} of {}", t.warps, t.warps_max)]);
    }
    out
}

/// What devices of meshes sent each other, how long that took them, how much of it they waited for one
/// another, and how long it was on its way while they went on; nothing where there was no mesh.
pub fn exchanges(rows: &[((Arc<str>, usize), Sent)]) -> String {
    let mut out = String::new();
    let mut line = |name: &str, cells: [&str; 6]| {
        let [device, runs, bytes, time, waited, hidden] = cells;
        let _ = writeln!(out, "{name:<24} {device:>7}  {runs:>7}  {bytes:>14}  {time:>10}  {waited:>10}  {hidden:>10}");
    };
    if !rows.is_empty() {
        line("exchange", ["device", "runs", "bytes sent", "time", "waited", "hidden"]);
    }
    for ((name, device), Sent { runs, bytes, time, waited, hidden }) in rows {
        let [device, runs, bytes] = [*device as u64, *runs, *bytes].map(|n| n.to_string());
        let [time, waited, hidden] = [*time, *waited, *hidden].map(shown);
        line(name, [&device, &runs, &bytes, &time, &waited, &hidden]);
    }
    if rows.iter().any(|((name, _), _)| name.ends_with("summands")) {
        out += "summands: under `fast` devices add up what each of them summed, so the last bits depend on the mesh\n";
    }
    out
}

fn source_line(row: &Row, sources: &SourceMap) -> String {
    let (start, end) = (row.origin.start as usize, row.origin.end as usize);
    let span = Span::new(ItemId(row.origin.item), start, end);
    match sources.line_col(span) {
        Some((file, line, _)) => {
            let path = sources.file(file).map_or("", |f| &f.path);
            format!("{}:{line}", path.rsplit('/').next().unwrap_or(path))
        }
        None => String::new(),
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// A time with its unit.
pub fn shown(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    match us {
        us if us < 1e3 => format!("{us:.1} µs"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_shares_and_medians() {
        let row = |name: &str, us: &[u64]| Row {
            name: name.into(),
            origin: Default::default(),
            times: us.iter().map(|&n| Duration::from_micros(n)).collect(),
            begins: us.iter().map(|_| Duration::ZERO).collect(),
            taken: None,
        };
        let text = table(&[row("dot", &[1, 3, 2]), row("add", &[2])], Duration::from_millis(1), &SourceMap::default());
        assert!(text.contains(" 75.0%        3      2.0 µs  dot"), "{text}");
        assert!(text.ends_with("kernels 8.0 µs of 1.00 ms from start to end\n"), "{text}");
    }
}

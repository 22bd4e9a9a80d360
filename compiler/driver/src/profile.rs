//! `tessera profile`: where the time of a program went.

mod against;
mod flame;
mod function;
mod more;
mod trace;

pub use against::{Saved, against, kept};
pub use function::lines;
pub use more::{counted, fullest, fusion, uncounted};

use crate::cli::Kept;
use crate::graph_facts::Place;
use crate::roof::Roof;
use serde_json::json;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_abi::plan::{About, Cost, StepOrigin};
use tessera_base::{Code, Diagnostic, ItemId, Span};
use tessera_resolve::source::SourceMap;
use tessera_runtime::device::Taken;
use tessera_runtime::fault::human_bytes;
use tessera_runtime::io::replace::{Durability, replace, try_at};
use tessera_runtime::profile::{DEVICES, EVENTS_FEW, Event, Kind, Profile, Row, Tiles};
use tessera_runtime::traffic::Sent;

/// A table of one line for each kernel or function of the runtime, by share: of the time that threads of the program
/// spent, how often it ran, the median of its times, what it computes and moves in a second and how much that is of the most
/// that this machine reaches, and the place in the program that it was made for. Below it the time of everything else, which
/// is no kernel. Times are measured, operations and bytes counted; what nothing accounts for is told, too.
pub fn table(profile: &Profile, whole: Duration, roof: Option<&Roof>, sources: &SourceMap) -> String {
    let rows = &profile.rows;
    let spent = spent(rows, whole);
    let percent = |time: Duration| 100.0 * ratio(time, spent);
    let mut out = String::new();
    let steps = by_time(rows, Kind::Step);
    let titles: Vec<String> = steps.iter().map(|row| title(row)).collect();
    let widest = |names: &mut dyn Iterator<Item = &str>| names.map(|n| n.chars().count()).max().unwrap_or(0);
    let width = widest(&mut steps.iter().map(|r| &*r.name)).clamp(6, 48);
    let wide = widest(&mut titles.iter().map(|t| &**t)).clamp(8, 48);
    let mut line = |cells: [&str; 8], [name, what]: [&str; 2], place: &str| {
        let [share, runs, median, flops, bytes, of_roof, tiles, tile] = cells;
        let name: String = name.chars().take(width).collect();
        let what: String = what.chars().take(wide).collect();
        let line = format!(
            "{share:>6}  {runs:>7}  {median:>10}  {flops:>8}  {bytes:>6}  {of_roof:>4}  {tiles:>6}  {tile:>8}  {name:<width$}  {what:<wide$}  {place}"
        );
        out += line.trim_end();
        out.push('\n');
    };
    line(["share", "runs", "median", "GFLOP/s", "GB/s", "roof", "tiles", "a tile"], ["kernel", "computes"], "place");
    for (row, what) in steps.iter().zip(&titles) {
        let work = Worked::of(row, profile);
        let [flops, bytes, of_roof] = work.map_or_else(Default::default, |w| w.cells(roof));
        let (share, runs, median) =
            (format!("{:.1}%", percent(row.time())), row.times.len().to_string(), shown(median(&row.times)));
        let [tiles, tile] = row.tiles.map_or_else(Default::default, |t| [t.count.to_string(), shown(mean(&t))]);
        // What has no better name needs no second one.
        let what = if *what == row.name { "" } else { what };
        let cells: [&str; 8] = [&share, &runs, &median, &flops, &bytes, &of_roof, &tiles, &tile];
        line(cells, [&row.name, what], &source_line(row, sources));
    }
    let kernels: Duration = steps.iter().map(|r| r.time()).sum();
    let _ = writeln!(out, "kernels {} of {} from start to end; the rest:", shown(kernels), shown(whole));
    let stages = by_time(rows, Kind::Stage).into_iter().map(|r| (r.name.as_str(), r.time()));
    for (name, time) in stages.chain([(UNKNOWN, unknown(rows, whole))]).filter(|(_, t)| percent(*t) >= 0.05) {
        match name {
            // The steps of the devices are above.
            DEVICES => _ = writeln!(out, "{:>6}  {:>19}  {name}, whose kernels are above", "", shown(time)),
            _ => _ = writeln!(out, "{:>5.1}%  {:>19}  {name}", percent(time), shown(time)),
        }
    }
    out
}

/// What one run of a kernel computes and moves, and the time of it together with the kernels that prepare its operands.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Worked {
    flops: u64,
    bytes: u64,
    seconds: f64,
    /// It moves values between devices.
    between_devices: bool,
}

impl Worked {
    /// `None` where that is not one number, as it is not for a kernel of several shapes.
    fn of(row: &Row, profile: &Profile) -> Option<Worked> {
        let about = the_only(row)?;
        let Cost { names, counts, between_devices } = about.cost.as_ref()?;
        let is_part = |r: &&Row| {
            let helps = || names.iter().any(|n| **n == r.name) && title(r).ends_with(&format!("[{}]", about.title));
            r.origin == row.origin && (std::ptr::eq(*r, row) || r.name != row.name && helps())
        };
        let seconds = profile.rows.iter().filter(is_part).map(|r| median(&r.times).as_secs_f64()).sum();
        let (flops, bytes) = (counts.flops, counts.bytes_read + counts.bytes_written);
        (seconds > 0.0).then_some(Worked { flops, bytes, seconds, between_devices: *between_devices })
    }

    /// Of the most that the machine reaches: operations where there are some, else bytes.
    fn of_roof(&self, roof: &Roof) -> f64 {
        match self.flops {
            0 => self.bytes as f64 / self.seconds / roof.bytes,
            flops => flops as f64 / self.seconds / roof.over(flops, self.bytes),
        }
    }

    /// For the table.
    fn cells(&self, roof: Option<&Roof>) -> [String; 3] {
        let giga = |n: u64| format!("{:.1}", n as f64 / self.seconds / 1e9);
        let roof = roof.filter(|_| !self.between_devices);
        let of_roof = roof.map(|roof| format!("{:.0}%", 100.0 * self.of_roof(roof)));
        [giga(self.flops), giga(self.bytes), of_roof.unwrap_or_default()]
    }
}

/// The time of a tile, on average.
fn mean(t: &Tiles) -> Duration {
    Duration::from_secs_f64(t.busy.as_secs_f64() / t.total.max(1) as f64)
}

/// How the tiles of a kernel ran, for tools. Seconds.
fn tiles(t: Tiles) -> serde_json::Value {
    let mean = mean(&t).as_secs_f64();
    let (busy, least, most) = (t.busy.as_secs_f64(), t.least.as_secs_f64(), t.most.as_secs_f64());
    json!({"count": t.count, "threads": t.threads, "busy": busy, "mean": mean, "least": least, "most": most})
}

/// What a row computes, if that is one thing: plans that were made at other times may say more or less about it.
fn the_only(row: &Row) -> Option<&About> {
    let (first, others) = row.about.split_first()?;
    others.iter().all(|a| a.title == first.title && a.cost == first.cost).then_some(first)
}

/// What a row computes; without sizes where it ran with several.
pub fn title(row: &Row) -> String {
    match (the_only(row), &row.about[..]) {
        (_, []) => row.name.clone(),
        (Some(one), _) => one.title.to_string(),
        (None, [first, ..]) => match first.title.split_once('[') {
            Some((kind, _)) if kind != "FusedOp" => format!("{kind}[…]"),
            _ => first.title.to_string(),
        },
    }
}

/// What is between stages, and before and after them.
const UNKNOWN: &str = "not accounted for";

/// Rows of a kind, those with the most time first.
fn by_time(rows: &[Row], kind: Kind) -> Vec<&Row> {
    let mut out: Vec<&Row> = rows.iter().filter(|r| r.kind == kind).collect();
    out.sort_by_key(|r| std::cmp::Reverse(r.time()));
    out
}

/// Of the first thread's time what no row has.
fn unknown(rows: &[Row], whole: Duration) -> Duration {
    whole.saturating_sub(rows.iter().map(|r| r.time().saturating_sub(r.elsewhere)).sum())
}

/// What all threads spent together: the first one from start to end, but where it waited for devices, and those of devices
/// in their steps.
fn spent(rows: &[Row], whole: Duration) -> Duration {
    let waited: Duration = rows.iter().filter(|r| r.name == DEVICES).map(Row::time).sum();
    whole.saturating_sub(waited) + rows.iter().map(|r| r.elsewhere).sum()
}

fn ratio(part: Duration, of: Duration) -> f64 {
    part.as_secs_f64() / of.as_secs_f64().max(1e-12)
}

/// The same for tools: one object, its rows by share. Seconds.
pub fn json(
    profile: &Profile,
    sent: &[((Arc<str>, usize), Sent)],
    whole: Duration,
    roof: Option<&Roof>,
    sources: &SourceMap,
) -> serde_json::Value {
    let rows = &profile.rows;
    let spent = spent(rows, whole);
    let steps = by_time(rows, Kind::Step);
    let row = |row: &&Row| {
        let work = Worked::of(row, profile);
        let work = work.map(|w| {
            let of_roof = roof.filter(|_| !w.between_devices).map(|roof| w.of_roof(roof));
            json!({"flops": w.flops, "bytes": w.bytes, "seconds": w.seconds, "of_roof": of_roof})
        });
        json!({
            "kernel": row.name,
            "name": title(row),
            "place": Place::of(span_of(row), sources),
            "runs": row.times.len(),
            "seconds": row.time().as_secs_f64(),
            "median": median(&row.times).as_secs_f64(),
            "share": ratio(row.time(), spent),
            "work": work,
            "tiles": row.tiles.map(tiles),
            "fusion": more::fused(row),
            "counted": more::counts(row),
        })
    };
    let stage = |row: &&Row| {
        // What devices do meanwhile has the share.
        let share = (row.name != DEVICES).then(|| ratio(row.time(), spent));
        json!({"stage": row.name, "runs": row.times.len(), "seconds": row.time().as_secs_f64(), "share": share})
    };
    let exchange = |((name, device), sent): &((Arc<str>, usize), Sent)| {
        let [time, waited, hidden] = [sent.time, sent.waited, sent.hidden].map(|t| t.as_secs_f64());
        let (runs, bytes) = (sent.runs, sent.bytes);
        json!({"name": **name, "device": device, "runs": runs, "bytes": bytes, "seconds": time, "waited": waited, "hidden": hidden})
    };
    let (runs, left_out) = runs(profile, &steps);
    json!({
        "schema": 1,
        "exchanges": sent.iter().map(exchange).collect::<Vec<_>>(),
        "profile": steps.iter().map(row).collect::<Vec<_>>(),
        "steps": runs,
        "steps_left_out": left_out,
        "roof": roof,
        "fullest": more::held(profile.fullest.as_ref(), sources),
        "stages": by_time(rows, Kind::Stage).iter().map(stage).collect::<Vec<_>>(),
        "kernels": steps.iter().map(|r| r.time()).sum::<Duration>().as_secs_f64(),
        "unknown": unknown(rows, whole).as_secs_f64(),
        "whole": whole.as_secs_f64(),
        "spent": spent.as_secs_f64(),
    })
}

/// The first runs of kernels by the time at which they began, at most so many as are kept without `--trace`: the number of the
/// row, when, and how long with all inside it. And how many there are besides.
fn runs(profile: &Profile, steps: &[&Row]) -> (Vec<(usize, f64, f64)>, usize) {
    let number = |row: &Row| steps.iter().position(|s| std::ptr::eq(*s, row));
    let numbers: Vec<Option<usize>> = profile.rows.iter().map(number).collect();
    let number = |e: &Event| numbers.get(e.row).copied().flatten();
    let run = |e: &Event| Some((number(e)?, e.start.as_secs_f64(), e.whole.as_secs_f64()));
    let all = profile.events.iter().filter(|e| number(e).is_some()).count();
    let mut out: Vec<(usize, f64, f64)> = profile.events.iter().filter_map(run).take(EVENTS_FEW).collect();
    out.sort_by(|a, b| a.1.total_cmp(&b.1));
    let left_out = profile.left_out + all - out.len();
    (out, left_out)
}

/// Looks at the files of the options before a program runs, which may take hours: the earlier profile, and whether the others
/// can be written.
///
/// # Errors
/// E0706 for a file that cannot be read or written, E0707 for one that is no profile, E0602 for one that is named twice.
pub fn ready(kept: &Kept, program: &Path) -> Result<Option<Saved>, Box<Diagnostic>> {
    let mut met = vec![program];
    let advice = kept.advise.as_ref().and_then(|a| a.save.as_ref());
    for path in [kept.save.as_ref(), kept.trace.as_ref(), kept.flame.as_ref(), advice].into_iter().flatten() {
        if met.contains(&path.as_path()) {
            let message = format!("`{}` is named twice, and would be lost", path.display());
            return Err(Box::new(Diagnostic::new(Code::E0602, Span::NONE, message)));
        }
        met.push(path);
        try_at(path).map_err(|e| unwritten(path, &e))?;
    }
    kept.against.as_deref().map(against::read).transpose()
}

/// Writes what the options of the command ask for.
///
/// # Errors
/// E0706 for a file that cannot be written.
pub fn keep(
    kept: &Kept,
    profile: &Profile,
    value: &serde_json::Value,
    sources: &SourceMap,
) -> Result<(), Box<Diagnostic>> {
    if let Some(path) = &kept.save {
        write(path, format!("{value:#}\n").as_bytes())?;
    }
    if let Some(path) = &kept.trace {
        let write = |to: &mut dyn io::Write| trace::write(profile, sources, to);
        replace(path, Durability::OnDisk, |e| e, write).map_err(|e| unwritten(path, &e))?;
    }
    if let Some(path) = &kept.flame {
        write(path, &flame::graph(&profile.rows, sources).map_err(|e| unwritten(path, &e))?)?;
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<Diagnostic>> {
    let written = replace(path, Durability::OnDisk, |e| e, |file| file.write_all(bytes));
    written.map_err(|e| unwritten(path, &e))
}

/// E0706.
pub fn unwritten(path: &Path, e: &io::Error) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::E0706, Span::NONE, format!("cannot write `{}`: {e}", path.display())))
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

/// Of what stands in no text, none.
fn span_of(row: &Row) -> Span {
    if row.origin == StepOrigin::default() {
        return Span::NONE;
    }
    Span::new(ItemId(row.origin.item), row.origin.start as usize, row.origin.end as usize)
}

/// `file.tsr:LINE`; nothing for what stands in no text.
fn source_line(row: &Row, sources: &SourceMap) -> String {
    line_of(span_of(row), sources)
}

fn line_of(span: Span, sources: &SourceMap) -> String {
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

    fn row(name: &str, kind: Kind, us: &[u64]) -> Row {
        let times = us.iter().map(|&n| Duration::from_micros(n)).collect();
        Row { times, ..Row::new(name, kind, StepOrigin::default()) }
    }

    #[test]
    fn rows_have_shares_and_medians() {
        let rows = [
            row("add", Kind::Step, &[20]),
            row("dot", Kind::Step, &[100, 300, 200]),
            row("checking", Kind::Stage, &[180]),
        ];
        let profile = Profile { rows: rows.into(), ..Profile::default() };
        let text = table(&profile, Duration::from_millis(1), None, &SourceMap::default());
        let lines: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
        let [dot, add, kernels, checking, rest] = lines[..] else { panic!("{text}") };
        assert!(
            dot.starts_with("60.0%        3    200.0 µs") && dot.ends_with("  dot") && add.starts_with("2.0%"),
            "{text}"
        );
        assert_eq!(kernels, "kernels 620.0 µs of 1.00 ms from start to end; the rest:");
        assert!(checking.starts_with("18.0%") && checking.ends_with("180.0 µs  checking"), "{text}");
        assert!(rest.starts_with("20.0%") && rest.ends_with("200.0 µs  not accounted for"), "{text}");
    }

    /// A plan that is made while a profile goes on says which operations are one kernel; one from before does not.
    #[test]
    fn what_is_said_at_other_times_is_no_other_work() {
        let mut dot = row("dot", Kind::Step, &[10, 10]);
        let counts = tessera_abi::plan::Counts { flops: 1000, ..Default::default() };
        let cost = Cost { names: vec!["dot".into()], counts, between_devices: false };
        let before = About { title: "MatMul[8x8x8]".into(), cost: Some(cost), ..About::default() };
        let during = About { fused: vec!["dot".into()], ..before.clone() };
        dot.about = vec![before.clone().into(), during.into()];
        let flops = |dot: &Row| {
            let profile = Profile { rows: vec![dot.clone()], ..Profile::default() };
            Worked::of(&profile.rows[0], &profile).map(|w| w.flops)
        };
        assert_eq!((title(&dot), flops(&dot)), ("MatMul[8x8x8]".into(), Some(1000)));
        dot.about.push(About { title: "MatMul[4x4x4]".into(), ..before }.into());
        assert_eq!((title(&dot), flops(&dot)), ("MatMul[…]".into(), None));
    }

    #[test]
    fn devices_are_not_counted_twice() {
        let mut dot = row("dot", Kind::Step, &[400, 400]);
        dot.elsewhere = Duration::from_micros(800);
        let rows = [dot, row(DEVICES, Kind::Stage, &[500]), row("checking", Kind::Stage, &[500])];
        let profile = Profile { rows: rows.into(), ..Profile::default() };
        let value = json(&profile, &[], Duration::from_millis(1), None, &SourceMap::default());
        let close = |a: &serde_json::Value, b: f64| a.as_f64().is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(close(&value["profile"][0]["share"], 0.8 / 1.3) && close(&value["unknown"], 0.0), "{value}");
    }

    #[test]
    fn a_long_trace_leaves_a_short_profile() {
        let event =
            |n: u64| Event { row: 0, thread: 0, start: Duration::from_micros(n), whole: Duration::ZERO, in_use: 0 };
        let events: Vec<Event> = (0..EVENTS_FEW as u64 + 7).map(event).collect();
        let profile = Profile { rows: vec![row("dot", Kind::Step, &[1])], events, ..Profile::default() };
        let value = json(&profile, &[], Duration::from_millis(1), None, &SourceMap::default());
        assert_eq!(value["steps"].as_array().map(Vec::len), Some(EVENTS_FEW));
        assert_eq!(value["steps_left_out"], 7);
    }
}

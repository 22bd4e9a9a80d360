//! What was measured of a function that a program profiles, as lines that `std.profile` reads.

use super::{Worked, median, source_line, title};
use crate::roof::Roof;
use std::fmt::Write;
use std::time::Duration;
use tessera_resolve::source::SourceMap;
use tessera_runtime::measure::Measured;
use tessera_runtime::profile::{Kind, Row};

/// The first line is of the calls: seconds, how many, the share of rows, their text. One for each row follows: title, kernel,
/// place, runs in a call, seconds, operations and bytes in a second, share of the roof, share of the threads' time, tiles,
/// seconds of a tile, text. What is not known is 0.
pub fn lines(measured: &Measured, roof: Option<&Roof>, sources: &SourceMap) -> Vec<String> {
    let calls = measured.times.len();
    let all: Duration = measured.times.iter().sum();
    let steps = || measured.profile.rows.iter().filter(|r| r.kind == Kind::Step);
    let share = super::ratio(steps().map(Row::time).sum(), all);
    let call = median(&measured.times);
    let mut head = format!("latency={}  runs={calls}  kernels={:.0}%", short(call), 100.0 * share);
    if steps().next().is_none() {
        head += "  no kernel ran";
    }
    let mut out = vec![line(&[&call.as_secs_f64().to_string(), &calls.to_string(), &share.to_string(), &head])];
    out.extend(steps().map(|row| of(row, measured, roof, &source_line(row, sources))));
    out
}

fn of(row: &Row, measured: &Measured, roof: Option<&Roof>, place: &str) -> String {
    let latency = median(&row.times);
    let runs = row.times.len() as f64 / measured.times.len().max(1) as f64;
    let mut text = format!("latency={}", short(latency));
    if runs != 1.0 {
        let _ = write!(text, "  runs={runs}");
    }
    let (mut flops, mut bandwidth, mut of_roof) = (0.0, 0.0, 0.0);
    if let Some(work) = Worked::of(row, &measured.profile) {
        (flops, bandwidth) = (work.flops as f64 / work.seconds, work.bytes as f64 / work.seconds);
        if work.flops > 0 {
            let _ = write!(text, "  flops={}FLOP/s", scaled(flops));
        }
        let _ = write!(text, "  bandwidth={}B/s", scaled(bandwidth));
        if let Some(roof) = roof.filter(|_| !work.between_devices) {
            of_roof = work.of_roof(roof);
            let is_bound = work.flops > 0 && roof.over(work.flops, work.bytes) >= roof.flops;
            let _ = write!(text, "  roof={:.0}% of {}", 100.0 * of_roof, if is_bound { "compute" } else { "memory" });
        }
    }
    let (mut occupancy, mut tiles, mut tile) = (0.0, 0, 0.0);
    if let Some(t) = row.tiles {
        let there = row.time().as_secs_f64() * t.threads as f64;
        occupancy = (t.busy.as_secs_f64() / there.max(1e-12)).min(1.0);
        (tiles, tile) = (t.count, super::mean(&t).as_secs_f64());
        let _ = write!(text, "  occupancy={:.0}%  tiles={tiles}", 100.0 * occupancy);
    }
    let [runs, seconds, occupancy, tile] = [runs, latency.as_secs_f64(), occupancy, tile].map(|n| n.to_string());
    let [flops, bandwidth, of_roof] = [flops, bandwidth, of_roof].map(|n| n.to_string());
    let (title, tiles) = (title(row), tiles.to_string());
    line(&[&title, &row.name, place, &runs, &seconds, &flops, &bandwidth, &of_roof, &occupancy, &tiles, &tile, &text])
}

fn line(parts: &[&str]) -> String {
    parts.iter().map(|p| p.replace(['|', '\n'], " ")).collect::<Vec<_>>().join("|")
}

/// `912G` of 912e9.
fn scaled(number: f64) -> String {
    let (unit, of) = match number {
        n if n >= 1e12 => ("T", 1e12),
        n if n >= 1e9 => ("G", 1e9),
        n if n >= 1e6 => ("M", 1e6),
        _ => ("k", 1e3),
    };
    let n = number / of;
    if n >= 100.0 { format!("{n:.0}{unit}") } else { format!("{n:.1}{unit}") }
}

/// A time without a space: it is one field of a row.
fn short(time: Duration) -> String {
    super::shown(time).replace(' ', "")
}

//! A plan as a table for people and as JSON.

use serde::Serialize;
use std::fmt::Write;
use tessera_plan::topology::Topology;
use tessera_runtime::fault::human_bytes;

/// Exchanges of one name that a device takes part in, in one call.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ExchangeRow {
    pub name: String,
    pub runs: u64,
    pub sent: u64,
    pub received: u64,
    pub seconds: f64,
}

impl ExchangeRow {
    pub fn add(&mut self, other: &ExchangeRow) {
        self.runs += other.runs;
        self.sent += other.sent;
        self.received += other.received;
        self.seconds += other.seconds;
    }
}

/// Devices that are alike in one call of a region.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ClassRow {
    pub devices: Vec<u64>,
    pub arguments: u64,
    pub outputs: u64,
    pub arena: u64,
    /// All three together.
    pub peak: u64,
    pub kernels: u64,
    pub flops: u64,
    /// Bytes that kernels read and write.
    pub moved: u64,
    /// Seconds of kernels, one after the other.
    pub compute: f64,
    /// Seconds of exchanges, one after the other.
    pub exchanged: f64,
    pub exchanges: Vec<ExchangeRow>,
}

/// A region at concrete shapes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RegionRow {
    pub name: String,
    pub calls: u64,
    /// Empty on one device.
    pub mesh: String,
    /// What moves that would not have to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub classes: Vec<ClassRow>,
}

impl RegionRow {
    /// Seconds of the slowest device: one after the other, and with exchanges beside all work.
    fn seconds(&self) -> (f64, f64) {
        let largest = |f: fn(&ClassRow) -> f64| self.classes.iter().map(f).fold(0.0, f64::max);
        (largest(|c| c.compute + c.exchanged), largest(|c| c.compute.max(c.exchanged)))
    }

    /// Devices that need the same memory and work, with the slowest exchanges of them.
    fn memory_rows(&self) -> Vec<Vec<String>> {
        let mut rows: Vec<ClassRow> = vec![];
        for c in &self.classes {
            let needs = |c: &ClassRow| [c.arguments, c.outputs, c.arena, c.kernels, c.flops, c.moved];
            match rows.iter_mut().find(|r| needs(r) == needs(c)) {
                Some(row) => {
                    row.devices.extend(&c.devices);
                    row.exchanged = row.exchanged.max(c.exchanged);
                }
                None => rows.push(ClassRow { exchanges: vec![], ..c.clone() }),
            }
        }
        let line = |mut c: ClassRow| {
            c.devices.sort_unstable();
            let [arguments, outputs, arena, peak] = [c.arguments, c.outputs, c.arena, c.peak].map(human_bytes);
            let (kernels, flops, moved) = (c.kernels.to_string(), count(c.flops), human_bytes(c.moved));
            let (compute, exchanged) = (time(c.compute), time(c.exchanged));
            vec![devices(&c.devices), arguments, outputs, arena, peak, kernels, flops, moved, compute, exchanged]
        };
        rows.into_iter().map(line).collect()
    }

    /// The exchanges by name, from the device that has least to the one that has most.
    fn exchange_rows(&self) -> Vec<Vec<String>> {
        let mut names: Vec<&str> = vec![];
        for e in self.classes.iter().flat_map(|c| &c.exchanges) {
            if !names.contains(&e.name.as_str()) {
                names.push(&e.name);
            }
        }
        let line = |name: &str| {
            let all = || self.classes.iter().flat_map(|c| &c.exchanges).filter(|e| e.name == name);
            let span = |f: fn(&ExchangeRow) -> u64| {
                let (least, most) = (all().map(f).min().unwrap_or(0), all().map(f).max().unwrap_or(0));
                if least == most { most.to_string() } else { format!("{least}-{most}") }
            };
            let slowest = all().map(|e| e.seconds).fold(0.0, f64::max);
            vec![name.to_owned(), span(|e| e.runs), span(|e| e.sent), span(|e| e.received), time(slowest)]
        };
        names.into_iter().map(line).collect()
    }
}

/// Everything.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Of the form as JSON.
    pub schema: u32,
    /// Of one function: its signature, and what was chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    pub topology: String,
    pub device: String,
    pub memory: u64,
    pub regions: Vec<RegionRow>,
    /// Seconds of all calls, one after the other.
    pub seconds: f64,
    /// The same with exchanges beside all work of their region.
    pub overlapped: f64,
    /// Bytes of the region and device that need most.
    pub peak: u64,
}

impl Report {
    pub fn new(topology: &Topology, regions: Vec<RegionRow>) -> Report {
        let sum = |f: fn((f64, f64)) -> f64| regions.iter().map(|r| f(r.seconds()) * r.calls as f64).sum();
        Report {
            schema: 1,
            notes: vec![],
            topology: topology.name.clone(),
            device: topology.device.name.clone(),
            memory: topology.device.memory_bytes,
            seconds: sum(|s| s.0),
            overlapped: sum(|s| s.1),
            peak: regions.iter().flat_map(|r| &r.classes).map(|c| c.peak).max().unwrap_or(0),
            regions,
        }
    }

    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        self.notes.iter().for_each(|note| out.push_str(&format!("// {note}\n")));
        for region in &self.regions {
            let place = if region.mesh.is_empty() { "one device".to_owned() } else { region.mesh.clone() };
            let _ = writeln!(out, "{}, {}, on {place}", region.name, times(region.calls));
            let heads = [
                "devices",
                "arguments",
                "outputs",
                "arena",
                "peak",
                "kernels",
                "flops",
                "moved",
                "compute",
                "exchange",
            ];
            table(&mut out, &heads, region.memory_rows());
            let rows = region.exchange_rows();
            if !rows.is_empty() {
                table(&mut out, &["exchange", "runs", "bytes sent", "bytes received", "time"], rows);
            }
            region.notes.iter().for_each(|note| out.push_str(&format!("  note: {note}\n")));
            out.push('\n');
        }
        let (seconds, overlapped) = (time(self.seconds), time(self.overlapped));
        let _ = writeln!(
            out,
            "predicted for `{}` ({}): {seconds} in all, {overlapped} where exchanges go along with work",
            self.topology, self.device
        );
        let share = 100.0 * self.peak as f64 / self.memory.max(1) as f64;
        let fits = if self.peak > self.memory { "does not fit" } else { "of its memory" };
        let _ = writeln!(out, "a device needs {} at most, {share:.1} % {fits}", human_bytes(self.peak));
        out
    }
}

fn times(n: u64) -> String {
    if n == 1 { "called once".into() } else { format!("called {n} times") }
}

/// `0-3, 8`.
fn devices(all: &[u64]) -> String {
    let mut out: Vec<(u64, u64)> = vec![];
    for &d in all {
        match out.last_mut() {
            Some((_, end)) if *end + 1 == d => *end = d,
            _ => out.push((d, d)),
        }
    }
    let shown: Vec<String> = out.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    shown.join(", ")
}

/// `1.5 T`.
pub fn count(n: u64) -> String {
    let units = [(1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    match units.iter().find(|(size, _)| n as f64 >= *size) {
        Some((size, unit)) => format!("{:.1}{unit}", n as f64 / size),
        None => n.to_string(),
    }
}

/// Seconds for people.
pub fn time(seconds: f64) -> String {
    match seconds {
        0.0 => "0".into(),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Columns as wide as they need to be, the first to the left.
pub fn table(out: &mut String, heads: &[&str], rows: Vec<Vec<String>>) {
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count());
        cells.chain([heads[i].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut line = |cells: &[&str]| {
        let mut text = String::new();
        for (i, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let _ = if i == 0 { write!(text, "  {cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(heads);
    rows.iter().for_each(|r| line(&r.iter().map(String::as_str).collect::<Vec<_>>()));
}

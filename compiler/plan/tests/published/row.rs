//! One published run, and sets of them.

use serde_json::Value;
use tessera_plan::request::Training;
use tessera_plan::search::{Way, search};
use tessera_plan::topology::Topology;

/// A run as `tessera plan` is asked for it, and the seconds of a step that were published.
pub struct Row {
    pub name: String,
    pub machine: Topology,
    pub training: Training,
    pub seconds: f64,
}

/// Rows of one source, with the mean and the largest of their errors in per cent, as they were measured.
pub struct Set {
    pub name: &'static str,
    pub rows: Vec<Row>,
    pub mean: f64,
    pub largest: f64,
}

pub fn machine(name: &str) -> Topology {
    Topology::named(name).unwrap_or_else(|| panic!("{name}"))
}

impl Row {
    /// A run whose step took so many seconds.
    pub fn new(name: impl Into<String>, machine: &Topology, asked: &Value, seconds: f64) -> Row {
        let name = name.into();
        let training = Training::parse(&asked.to_string(), machine).unwrap_or_else(|e| panic!("{name}: {e}"));
        Row { name, machine: machine.clone(), training, seconds }
    }

    /// A run whose devices did so many TFLOP/s each, of operations that are counted so.
    pub fn of_rate(
        name: impl Into<String>,
        machine: &Topology,
        asked: &Value,
        tflops: f64,
        operations: impl Fn(&Training) -> f64,
    ) -> Row {
        let row = Row::new(name, machine, asked, 0.0);
        let seconds = operations(&row.training) / row.training.devices as f64 / tflops / 1e12;
        Row { seconds, ..row }
    }

    /// The fastest way; where none fits by the memory that is counted, as if there was room.
    pub fn planned(&self) -> Way {
        let wanted = self.training.wanted();
        let of = |machine: &Topology| search(machine, &self.training.model, &wanted).into_iter().next();
        let roomy = || {
            let mut roomy = self.machine.clone();
            roomy.device.memory_bytes = u64::MAX;
            of(&roomy)
        };
        of(&self.machine).or_else(roomy).unwrap_or_else(|| panic!("{}: no way", self.name))
    }
}

/// Relative errors of predicted times.
pub fn errors(rows: &[Row]) -> Vec<f64> {
    rows.iter().map(|r| r.planned().step.seconds / r.seconds - 1.0).collect()
}

impl Set {
    /// Prints the rows; what is not as it was measured.
    pub fn check(&self) -> Option<String> {
        let errors = errors(&self.rows);
        for (row, error) in self.rows.iter().zip(&errors) {
            let Way { job, step } = row.planned();
            println!(
                "{:<10} {:<32} published {:>8.3} s, predicted {:>8.3} s  {:>+6.1} %  chunks {}, micro {}, {:?}, {:?}",
                self.name,
                row.name,
                row.seconds,
                step.seconds,
                error * 100.0,
                job.chunks,
                job.micro,
                job.recompute,
                job.states,
            );
        }
        let n = errors.len() as f64;
        let mean = 100.0 * errors.iter().map(|e| e.abs()).sum::<f64>() / n;
        let largest = 100.0 * errors.iter().map(|e| e.abs()).fold(0.0, f64::max);
        let signed = 100.0 * errors.iter().sum::<f64>() / n;
        println!("{:<10} {n} rows: mean {mean:.1} %, largest {largest:.1} %, with signs {signed:+.1} %", self.name);
        let is_measured = (mean - self.mean).abs() < 0.1 && (largest - self.largest).abs() < 0.1;
        (!is_measured).then(|| format!("{}: mean {mean:.1}, largest {largest:.1}", self.name))
    }
}

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

pub fn machine(name: &str) -> Topology {
    if let Ok(dir) = std::env::var("FIT") {
        let text = std::fs::read_to_string(format!("{dir}/{name}.json")).unwrap();
        return Topology::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    Topology::named(name).unwrap_or_else(|| panic!("{name}"))
}

impl Row {
    pub fn new(name: impl Into<String>, machine: &Topology, asked: &Value, seconds: f64) -> Row {
        let name = name.into();
        let training = Training::parse(&asked.to_string(), machine).unwrap_or_else(|e| panic!("{name}: {e}"));
        Row { name, machine: machine.clone(), training, seconds }
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

    /// The relative error of the predicted time, printed.
    pub fn error(&self, set: &str) -> f64 {
        let Way { job, step } = self.planned();
        let error = step.seconds / self.seconds - 1.0;
        println!(
            "{set:<10} {:<36} published {:>9.3} s  predicted {:>9.3} s  {:>+6.1} %  v {} b {} {:?}{} {:?} {:.0}%",
            self.name,
            self.seconds,
            step.seconds,
            error * 100.0,
            job.chunks,
            job.micro,
            job.recompute,
            job.again.map_or(String::new(), |n| format!(" of {n}")),
            job.states,
            step.memory / self.machine.device.memory_bytes as f64 * 100.0,
        );
        error
    }
}

/// Mean and largest of the errors of a set, without their signs; printed with the mean that has them.
pub fn summary(set: &str, rows: &[Row]) -> (f64, f64) {
    let errors: Vec<f64> = rows.iter().map(|r| r.error(set)).collect();
    let mean = errors.iter().map(|e| e.abs()).sum::<f64>() / errors.len() as f64;
    let largest = errors.iter().map(|e| e.abs()).fold(0.0, f64::max);
    let bias = errors.iter().sum::<f64>() / errors.len() as f64;
    println!(
        "{set:<10} {} rows: mean {:.1} %, largest {:.1} %, with signs {:+.1} %",
        rows.len(),
        mean * 100.0,
        largest * 100.0,
        bias * 100.0
    );
    (mean, largest)
}

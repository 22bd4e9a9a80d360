//! Published training runs beside what is predicted for them, each planned from what a file for `tessera plan` would say.
//! Every row is printed; the errors of each set stand here as they were measured, and are asserted.
//!
//! Four numbers are fitted, all to the first set: what FlashAttention reaches beside FlashAttention-2, what operators one
//! by one reach beside fused ones, the deviation of nodes, and products of H100's libraries until 2024. No other number
//! comes from a training run. The second set was looked at when it was decided which nodes wait for each other. No
//! number was made with the others; which choices of the model were made after their errors had been seen stands in
//! `docs/planner.md`.

mod flash;
mod foundry;
mod h100;
mod row;
mod selene;

use row::{Row, Set, errors};

fn fitted() -> Set {
    Set { name: "MPT 1b, 7b", rows: foundry::rows(|r| r.is_fitted()), mean: 2.5, largest: 15.4 }
}

fn looked_at() -> Set {
    Set { name: "sequences", rows: selene::sequence_paper(), mean: 3.2, largest: 6.6 }
}

fn held_out() -> Vec<Set> {
    let set = |name, rows: Vec<Row>, mean, largest| Set { name, rows, mean, largest };
    vec![
        set("MPT others", foundry::rows(|r| !r.is_fitted() && !r.is_narrow()), 3.7, 27.5),
        set("MPT fp8", foundry::rows(|r| r.is_narrow()), 8.1, 18.7),
        set("SC21", selene::weak_scaling(), 3.6, 8.9),
        set("SC21 PTD", selene::beside_zero(), 2.9, 6.7),
        set("MegaScale", selene::megascale(), 2.6, 5.3),
        set("Flash-2", flash::rows(), 8.1, 11.1),
        set("Megatron", h100::megatron(), 6.3, 10.1),
        set("177B", h100::strong_scaling(), 7.7, 10.6),
        set("Llama 3", h100::llama3(), 12.2, 12.9),
        set("H100 fp8", h100::bridge_h100(), 3.2, 6.0),
        set("GB200 fp8", h100::bridge_gb200(), 11.5, 17.5),
    ]
}

/// Sets that what a file can say does not describe: DeepSpeed's ZeRO-3 of 2021 exchanges each parameter by itself.
fn beyond_files() -> Set {
    Set { name: "SC21 ZeRO", rows: selene::zero(), mean: 50.5, largest: 72.4 }
}

#[test]
fn sets_are_as_near_as_was_measured() {
    let mut all = vec![];
    for set in [fitted(), looked_at()].iter().chain(&held_out()).chain([&beyond_files()]) {
        all.push(set.check());
    }
    let wrong: Vec<String> = all.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asked of rows that no number was made with: a mean of 10 % and none beyond 20 %. Eight are beyond: those of ZeRO-3, and
/// MPT-30b with sequences of 8192 on eight devices, which leaves a tenth of the memory free.
#[test]
fn rows_that_were_held_out() {
    let (mut sum, mut count, mut beyond) = (0.0, 0, vec![]);
    for set in held_out().iter().chain([&beyond_files()]) {
        for (row, error) in set.rows.iter().zip(errors(&set.rows)) {
            sum += error.abs();
            count += 1;
            if error.abs() > 0.20 {
                beyond.push((set.name, row.name.clone()));
            }
        }
    }
    println!("{count} rows held out: mean {:.1} %, {} beyond 20 %", 100.0 * sum / f64::from(count), beyond.len());
    assert!(sum / f64::from(count) <= 0.10);
    assert!(beyond.iter().all(|(set, row)| *set == "SC21 ZeRO" || row.starts_with("30b 8192 1 x8")), "{beyond:?}");
}

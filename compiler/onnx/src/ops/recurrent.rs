//! Networks that go over a sequence: their functions are in `std.onnx`.

use super::Row;
use crate::node::{No, Node};
use crate::value::{Tensor, Value};
use tessera_runtime::io::onnx::Attribute;

pub const ROWS: &[Row] =
    &[("GRU", |n| recurrent(n, "gru")), ("LSTM", |n| recurrent(n, "lstm")), ("RNN", |n| recurrent(n, "rnn"))];

fn recurrent(n: &mut Node, name: &str) -> Result<(), No> {
    if n.has(4) {
        return Err("sequences of different lengths are not supported".into());
    }
    if n.attribute("activations").is_some_and(|a| !usual(a, name)) || n.attribute("clip").is_some() {
        return Err("only the usual activations are supported".into());
    }
    if n.int("layout", 0) != 0 || n.has(7) {
        return Err("`layout=1` and peepholes are not supported".into());
    }
    let (x, w, r) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let bias = n.optional(3)?.map_or("None".into(), |b| b.text);
    let first = n.optional(5)?.map_or("None".into(), |h| h.text);
    let direction = match &*n.text("direction", "forward") {
        "forward" => 0,
        "reverse" => 1,
        _ => 2,
    };
    let mut args = format!("{}, {}, {}, {bias}, {first}", x.text, w.text, r.text);
    if name == "lstm" {
        let cell = n.optional(6)?.map_or("None".into(), |c| c.text);
        args.push_str(&format!(", {cell}"));
    }
    args.push_str(&format!(", direction={direction}"));
    if name == "gru" {
        let late = if n.int("linear_before_reset", 0) != 0 { "True" } else { "False" };
        args.push_str(&format!(", late={late}"));
    }
    let call = n.library(&format!("{name}({args})"));
    let all = n.bound(&call, 0, x.dtype)?;
    let ranks: &[usize] = if name == "lstm" { &[4, 3, 3] } else { &[4, 3] };
    for (i, rank) in ranks.iter().enumerate().filter(|(i, _)| n.wants(*i)).collect::<Vec<_>>() {
        let text = n.body.line(&format!("{}[{i}]", all.text), "")?;
        n.result(i, Value::Tensor(Tensor::new(text, *rank, x.dtype)));
    }
    Ok(())
}

/// Whether these are the activations that a node has where it names none.
fn usual(activations: &Attribute, name: &str) -> bool {
    let Attribute::Texts(names) = activations else { return false };
    let wanted: &[&str] = match name {
        "gru" => &["sigmoid", "tanh"],
        "lstm" => &["sigmoid", "tanh", "tanh"],
        _ => &["tanh"],
    };
    names.iter().enumerate().all(|(i, n)| n.eq_ignore_ascii_case(wanted[i % wanted.len()]))
}

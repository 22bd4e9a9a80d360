//! Networks that go over a sequence: their functions are in `std.onnx`.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value, literal};
use tessera_base::DType;

/// What all of them have, and what two of them have beside it.
const OPTIONS: &[&str] = &[
    "activations",
    "activation_alpha",
    "activation_beta",
    "clip",
    "direction",
    "layout",
    "input_forget",
    "linear_before_reset",
];
/// What weights and results say too.
const SAID: &[&str] = &["hidden_size", "output_sequence"];

pub const ROWS: &[Row] = &[
    row("GRU", |n| recurrent(n, "gru", &["Sigmoid", "Tanh"])).honours(OPTIONS).ignores(SAID),
    row("LSTM", |n| recurrent(n, "lstm", &["Sigmoid", "Tanh", "Tanh"])).honours(OPTIONS).ignores(SAID),
    row("com.microsoft.DynamicQuantizeLSTM", |n| recurrent(n, "lstm", &["Sigmoid", "Tanh", "Tanh"]))
        .honours(&["activation_alpha", "activation_beta", "activations", "clip", "direction", "input_forget"])
        .ignores(&["hidden_size"]),
    row("RNN", |n| recurrent(n, "rnn", &["Tanh"])).honours(OPTIONS).ignores(SAID),
];

/// Activations with parameters: what the first is where a file does not tell it, and the second.
///
/// `None` where the standard does not say.
type Defaults = (&'static str, Option<Option<f32>>, Option<Option<f32>>);

const ACTIVATIONS: &[Defaults] = &[
    ("Relu", None, None),
    ("Tanh", None, None),
    ("Sigmoid", None, None),
    ("Affine", Some(None), Some(None)),
    ("LeakyRelu", Some(Some(0.01)), None),
    ("ThresholdedRelu", Some(Some(1.0)), None),
    ("ScaledTanh", Some(None), Some(None)),
    ("HardSigmoid", Some(Some(0.2)), Some(Some(0.5))),
    ("Elu", Some(Some(1.0)), None),
    ("Softsign", None, None),
    ("Softplus", None, None),
];

fn recurrent(n: &mut Node, name: &str, usual: &[&'static str]) -> Result<(), No> {
    let batch_first = n.int("layout", 0) != 0;
    let turn = |n: &mut Node, t: Option<Tensor>| -> Result<Option<Tensor>, No> {
        match t {
            Some(t) if batch_first => n.bound(&format!("op.swapaxes({}, 0, 1)", t.text), t.rank, t.dtype).map(Some),
            t => Ok(t),
        }
    };
    let given = n.tensor(0)?;
    let x = turn(n, Some(given))?.ok_or("it lacks argument 0")?;
    let (mut w, mut r) = (n.tensor(1)?, n.tensor(2)?);
    let mut scales = vec![];
    if n.has(8) {
        // Ints, with the columns of the weights as rows.
        for (t, i) in [(&mut w, 8), (&mut r, 10)] {
            let (scale, zero) = (n.tensor(i)?, n.tensor(i + 1)?);
            let zero = format!("{}.to(i32).reshape({}, 1, -1)", zero.text, t.dim(0).text());
            let shifted = n.bound(&format!("{}.to(i32) - {zero}", t.text), 3, DType::I32)?;
            scales.push(format!("{}.reshape({}, -1)", scale.text, t.dim(0).text()));
            *t = n.bound(&format!("op.swapaxes({}, 1, 2)", shifted.text), 3, DType::I32)?;
        }
    }
    let text = |t: Option<Tensor>| t.map_or("None".to_owned(), |t| t.text);
    let bias = n.optional(3)?;
    let start = n.optional(5)?;
    let start = turn(n, start)?;
    let mut args = format!("{}, {}, {}, {}, {}", x.text, w.text, r.text, text(bias), text(start));
    if name == "lstm" {
        let cell = n.optional(6)?;
        let cell = turn(n, cell)?;
        args.push_str(&format!(", {}", text(cell)));
    }
    let direction = match &*n.text("direction", "forward") {
        "forward" => 0,
        "reverse" => 1,
        _ => 2,
    };
    args.push_str(&format!(", direction={direction}"));
    if n.int("linear_before_reset", 0) != 0 {
        args.push_str(", late=True");
    }
    if n.int("input_forget", 0) != 0 {
        args.push_str(", coupled=True");
    }
    if let Some(peepholes) = n.optional(7)? {
        args.push_str(&format!(", peepholes={}", peepholes.text));
    }
    if let Some(lengths) = n.optional(4)? {
        args.push_str(&format!(", lengths={}", lengths.text));
    }
    if n.attribute("clip").is_some() {
        args.push_str(&format!(", clip={}", n.literal("clip", 0.0, DType::F64)));
    }
    let directions = if direction == 2 { 2 } else { 1 };
    if let Some(activations) = activations(n, usual, directions)? {
        args.push_str(&format!(", activations={activations}"));
    }
    if !scales.is_empty() {
        args.push_str(&format!(", scales=({})", scales.join(", ")));
    }
    let call = n.library(&format!("{name}({args})"));
    let all = n.bound(&call, 0, x.dtype)?;
    let ranks: &[usize] = if name == "lstm" { &[4, 3, 3] } else { &[4, 3] };
    for (i, rank) in ranks.iter().enumerate().filter(|(i, _)| n.wants(*i)).collect::<Vec<_>>() {
        let order = match (batch_first, rank) {
            (true, 4) => ".transpose(2, 0, 1, 3)",
            (true, _) => ".transpose(1, 0, 2)",
            (false, _) => "",
        };
        let text = n.body.line(&format!("{}[{i}]{order}", all.text))?;
        n.result(i, Value::Tensor(Tensor::new(text, *rank, x.dtype)));
    }
    Ok(())
}

/// The activations that are not the usual ones, with their parameters, as an argument.
fn activations(n: &Node, usual: &[&'static str], directions: usize) -> Result<Option<String>, No> {
    let mut named = n.texts("activations");
    let count = usual.len() * directions;
    // The default of the first networks has two, of which one direction needs one.
    if named.len() == 2 * count && n.schema.op == "RNN" {
        named.truncate(count);
    }
    if named.is_empty() {
        named = usual.iter().cycle().take(count).map(|a| (*a).to_owned()).collect();
    } else if named.len() != count {
        return n.refuses("activations", &format!("{directions} directions have {count} activations"));
    }
    let (alphas, betas) = (n.floats("activation_alpha"), n.floats("activation_beta"));
    if alphas.is_empty()
        && betas.is_empty()
        && named.iter().zip(usual.iter().cycle()).all(|(a, u)| a.eq_ignore_ascii_case(u))
    {
        return Ok(None);
    }
    let (mut alphas, mut betas) = (alphas.into_iter(), betas.into_iter());
    let mut out = vec![];
    for own in &named {
        let Some((name, alpha, beta)) = ACTIVATIONS.iter().find(|(a, ..)| own.eq_ignore_ascii_case(a)) else {
            return n.refuses("activations", "one of them is not known");
        };
        let next = |which: &str, list: &mut std::vec::IntoIter<f32>, default: &Option<Option<f32>>| match default {
            None => Ok(0.0),
            Some(default) => list.next().or(*default).ok_or(format!("its activation `{name}` lacks `{which}`")),
        };
        let alpha = next("activation_alpha", &mut alphas, alpha)?;
        let beta = next("activation_beta", &mut betas, beta)?;
        let [alpha, beta] = [alpha, beta].map(|x| literal(f64::from(x), DType::F64));
        out.push(format!("(\"{}\", {alpha}, {beta})", name.to_lowercase()));
    }
    if alphas.next().is_some() || betas.next().is_some() {
        return n.refuses(
            if n.floats("activation_alpha").is_empty() { "activation_beta" } else { "activation_alpha" },
            "it has more numbers than its activations take",
        );
    }
    Ok(Some(format!("[{}]", out.join(", "))))
}

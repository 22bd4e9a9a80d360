//! E0405 and E0411 in per-device code: an operator that needs all of what each device has a part of.

use tessera_base::{Code, Own};
use tessera_ops::surface::{OpError, Wrap};

/// What the parts make together.
pub fn whole(own: Own) -> &'static str {
    match own {
        Own::Max => "the maximum",
        Own::Min => "the minimum",
        Own::Mean | Own::Times => "the mean",
        _ => "the sum",
    }
}

/// The end of the call that puts parts together.
pub fn reduces(own: Own, axis: &str) -> String {
    match own {
        Own::Max | Own::Min | Own::Mean => format!(", axis=\"{axis}\", op=\"{}\")", own.name()),
        _ => format!(", axis=\"{axis}\")"),
    }
}

/// An operator that does not take the parts of an operand, which itself is `lies`.
pub fn own_part(name: &str, axis: &str, own: Own, lies: Option<Own>, param: Option<usize>) -> OpError {
    let whole = whole(own);
    let wrap = |e: OpError, what: &str, before: &str, after: String| {
        let title = format!("{what}: `{before}x{after}`");
        match param {
            Some(param) => {
                let mut e = e;
                e.wraps.push(Wrap { title, param, before: before.to_owned(), after });
                e
            }
            None => e.help(title),
        }
    };
    let reduce = "dist.collective.all_reduce(";
    let each = |e: OpError| {
        let title = "or have each device go on with its own";
        wrap(e, title, "dist.each(", format!(", axis=\"{axis}\")"))
    };
    match (own, lies) {
        (Own::Times, _) => {
            let text = format!("`{name}` needs the mean, and this is the sum of the means of all devices of `{axis}`");
            let e = OpError::new(Code::E0411, text).note(format!("it is `dist.size(\"{axis}\")` times the mean"));
            let e = wrap(e, "divide it first", "(", format!(" / dist.size(\"{axis}\"))"));
            e.help(format!("or have the mean at once: `dist.collective.all_reduce(x, axis=\"{axis}\", op=\"mean\")`"))
        }
        (_, Some(Own::Block(dim))) => {
            let needs = if own.is_part() { format!("{whole} along dim {dim}") } else { format!("dim {dim} in full") };
            let text = format!("`{name}` needs {needs}, of which each device of `{axis}` has a block");
            let e = OpError::new(Code::E0405, text).note(
                "in per-device code an operator sees the block of its device, and computes nothing of the others",
            );
            let after = format!(", axis=\"{axis}\", dim={dim})");
            each(wrap(e, "have all of it", "dist.collective.all_gather(", after))
        }
        _ => {
            let e = OpError::new(Code::E0405, format!("`{name}` needs {whole}, and this is partial over `{axis}`"));
            let e = e.note(format!("of a `{own}@{axis}` value each device of `{axis}` has a part only"));
            let e = match name {
                "add" | "sub" if own == Own::Sum => e
                    .note(format!("what is no part of that sum would be added once by each device of `{axis}`"))
                    .help("what only begins a sum is `op.zeros(…)`: zeros are a summand of each"),
                _ => e,
            };
            each(wrap(e, "complete it first", reduce, reduces(own, axis)))
        }
    }
}

//! `tessera explain`: the page of a diagnostic code, an operator, the list of codes, or a function of a file.

pub mod line;
pub mod graphs;
pub mod calls;
pub mod function;

pub use function::{Place, function, place};

use std::fmt::Write;
use tessera_base::Code;
use tessera_ide::written;
use tessera_ops::surface::{self, OpDef};

/// The text for a topic; `Err` holds what to say when there is none.
pub fn explain(topic: Option<&str>) -> Result<String, String> {
    let Some(topic) = topic else { return Ok(list()) };
    if let Some(code) = Code::parse(topic) {
        return Ok(code.page().trim_end().to_owned() + "\n");
    }
    let name = topic.strip_prefix("op.").unwrap_or(topic);
    if let Some(def) = surface::find(name) {
        return Ok(operator(def));
    }
    let codes = Code::ALL.iter().map(|c| c.name());
    let near = tessera_base::nearest(&topic.to_uppercase(), codes).or_else(|| surface::suggest(name));
    let hint = near.map_or_else(|| "`tessera explain` lists the codes".to_owned(), |n| format!("did you mean `{n}`?"));
    Err(format!("there is no code and no operator `{topic}`; {hint}"))
}

fn list() -> String {
    let mut out = String::from("Diagnostics (`tessera explain CODE` shows the page):\n\n");
    for code in Code::ALL {
        let _ = writeln!(out, "  {code}  {}", code.title());
    }
    out
}

fn operator(def: &OpDef) -> String {
    let mut out = format!("{}\n\n{}\n", written::operator(def).text().0, def.doc.trim());
    if !def.signature.is_empty() {
        let _ = write!(out, "\nAxes: {}\n", def.signature);
    }
    if def.method {
        let _ = write!(out, "\nAlso a method of tensors: x.{}(...)\n", def.name);
    }
    if let Some(reason) = def.unsupported {
        let _ = write!(out, "\nNot supported yet: {reason}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_operators_have_pages_and_others_a_hint() {
        assert!(explain(Some("e0201")).is_ok_and(|p| p.starts_with("# E0201")));
        assert!(explain(Some("softmax")).is_ok_and(|p| p.contains("axis=-1")));
        assert!(explain(Some("E02O1")).is_err_and(|e| e.contains("did you mean")));
    }
}

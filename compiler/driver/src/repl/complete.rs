//! Completion: names in scope, members of modules, methods and attributes by the type of what
//! stands before the dot.

use super::directive::DIRECTIVES;
use super::state::State;
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::DType;
use tessera_core::builtins;
use tessera_core::ty::Ty;
use tessera_grammar::token::KEYWORDS;
use tessera_infer::db::Entity;
use tessera_ops::surface;

/// What can be completed.
#[derive(Default)]
pub struct Known {
    variables: BTreeMap<String, Ty>,
    /// Names of built-in modules and what they stand for.
    modules: BTreeMap<String, String>,
    /// Imported files and their members.
    files: BTreeMap<String, Vec<String>>,
    others: BTreeSet<String>,
}

impl Known {
    pub fn of(state: &State) -> Known {
        let mut known = Known::default();
        known.variables.extend(state.checker.variables().into_iter().map(|v| (v.name.to_string(), v.ty)));
        for (name, entity) in state.checker.names() {
            let name = name.to_string();
            match entity {
                Entity::Module(m) => _ = known.modules.insert(name, m.to_string()),
                Entity::File(id) => _ = known.files.insert(name, state.checker.members(id)),
                Entity::Broken => {}
                _ => _ = known.others.insert(name),
            }
        }
        known
    }

    /// Where the word at the end of `line` begins, and what it can become, sorted.
    pub fn complete(&self, line: &str) -> (usize, Vec<String>) {
        if let Some(topic) = line.strip_prefix(":explain ") {
            let codes = tessera_base::Code::ALL.iter().map(|c| c.name().to_owned());
            let all = codes.chain(surface::all().map(|d| d.name.to_owned()));
            return (":explain ".len(), starting(all, topic));
        }
        if line.starts_with(':') && !line.contains(' ') {
            return (0, starting(DIRECTIVES.iter().map(|(n, ..)| format!(":{n}")), line));
        }
        let word_char = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start =
            line.rfind(|c: char| !word_char(c)).map_or(0, |i| i + line[i..].chars().next().map_or(1, char::len_utf8));
        let word = &line[start..];
        match word.rsplit_once('.') {
            None => (start, starting(self.names().into_iter(), word)),
            Some((base, last)) => {
                let at = start + base.len() + 1;
                // After a call or an index: most likely a tensor.
                let after_value = base.is_empty() && line[..start].ends_with([')', ']']);
                let members = if after_value { members_of(&Ty::AnyTensor) } else { self.members(base) };
                (at, starting(members.into_iter(), last))
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let fixed = KEYWORDS.iter().chain(builtins::FUNCTIONS).chain(builtins::MODULES).map(|s| s.to_string());
        let dtypes = DType::ALL.iter().map(|d| d.name().to_owned());
        let own =
            self.variables.keys().chain(self.modules.keys()).chain(self.files.keys()).chain(&self.others).cloned();
        own.chain(fixed).chain(dtypes).collect()
    }

    fn members(&self, base: &str) -> Vec<String> {
        let mut parts = base.split('.');
        let first = parts.next().unwrap_or("");
        if let Some(ty) = self.variables.get(first) {
            let mut ty = ty.clone();
            for field in parts {
                match field_type(&ty, field) {
                    Some(t) => ty = t,
                    None => return vec![],
                }
            }
            return members_of(&ty);
        }
        if let Some(members) = self.files.get(base) {
            return members.clone();
        }
        let module = match self.modules.get(first) {
            Some(m) => format!("{m}{}", &base[first.len()..]),
            None => base.to_owned(),
        };
        if module == "std" {
            return tessera_ide::library::modules().map(str::to_owned).collect();
        }
        tessera_infer::members::members(&module)
    }
}

fn field_type(ty: &Ty, name: &str) -> Option<Ty> {
    match ty {
        Ty::Struct(s) => s.fields.iter().find(|(n, _)| **n == *name).map(|(_, t)| t.clone()),
        Ty::Tensor(_) | Ty::AnyTensor if name == "T" => Some(ty.clone()),
        _ => None,
    }
}

fn members_of(ty: &Ty) -> Vec<String> {
    let built_in = |prefix: &str| -> Vec<String> {
        let rows = builtins::rows().map(|b| b.name()).chain(builtins::CALLS.iter().map(|c| c.name));
        rows.filter_map(|n| n.strip_prefix(prefix)).map(str::to_owned).collect()
    };
    match ty {
        Ty::Tensor(_) | Ty::AnyTensor => surface::methods().map(str::to_owned).chain(built_in("Tensor.")).collect(),
        Ty::Struct(s) => s.fields.iter().map(|(n, _)| n.to_string()).collect(),
        Ty::Str => built_in("str."),
        Ty::List(_) => built_in("list."),
        Ty::Dict(..) => built_in("dict."),
        _ => vec![],
    }
}

fn starting(all: impl Iterator<Item = String>, word: &str) -> Vec<String> {
    // Names that begin with an underscore only where asked for.
    let fits = |n: &String| n.starts_with(word) && (!n.starts_with('_') || word.starts_with('_'));
    let found: BTreeSet<String> = all.filter(fits).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions() {
        let mut known = Known::default();
        known.variables.insert("weights".into(), Ty::AnyTensor);
        known.variables.insert("name".into(), Ty::Str);
        let of = |line: &str| known.complete(line);
        assert_eq!(of("x = wei"), (4, vec!["weights".to_owned()]));
        assert_eq!(of("op.softm").1, ["softmax"]);
        assert_eq!(of("f(weights.resh"), (10, vec!["reshape".to_owned()]));
        assert!(of("op.relu(x).su").1.contains(&"sum".to_owned()));
        assert!(of("name.spl").1.contains(&"split".to_owned()));
        assert_eq!(of(":ex"), (0, vec![":explain".to_owned()]));
        assert_eq!(of(":explain E070").1.first().map(String::as_str), Some("E0701"));
        assert_eq!(of("über.x").1, [""; 0]);
    }
}

//! The parameters of the call that is being written, to be shown behind the cursor.

use super::state::State;
use std::collections::BTreeMap;
use tessera_base::FileId;
use tessera_core::builtins;
use tessera_grammar::token::{Tok, Token, lex};
use tessera_ide::analysis::Analysis;
use tessera_ide::symbol::Symbol;
use tessera_ide::written::{Parameter, operator};
use tessera_infer::db::Entity;
use tessera_ops::surface;

/// What can be called, by its path.
#[derive(Default)]
pub struct Signatures {
    calls: BTreeMap<String, Vec<Parameter>>,
    /// Names of built-in modules.
    modules: BTreeMap<String, String>,
}

impl Signatures {
    pub fn of(state: &State) -> Signatures {
        let db = state.checker.database();
        let cx = Analysis::new(db, FileId(0));
        let mut out = Signatures::default();
        let mut add = |path: String, symbol: &Symbol| {
            if let Some(call) = cx.call(symbol) {
                out.calls.insert(path, call.params);
            }
        };
        let built_in = builtins::rows().map(|b| b.name()).chain(builtins::CALLS.iter().map(|c| c.name));
        built_in.for_each(|name| add(name.to_owned(), &Symbol::Builtin(name.into())));
        for name in surface::methods() {
            add(format!("Tensor.{name}"), &Symbol::OfTensor(name.into()));
        }
        let symbol = |entity: Entity| match entity {
            Entity::Def(id) => Some(Symbol::Def(id)),
            Entity::Struct(id) => Some(Symbol::Struct(id)),
            Entity::Builtin(name) => Some(Symbol::Builtin(name)),
            _ => None,
        };
        let mut modules = BTreeMap::new();
        for (name, entity) in state.checker.names() {
            match entity {
                Entity::Module(m) => _ = modules.insert(name.to_string(), m.to_string()),
                Entity::File(file) => {
                    for member in state.checker.members(file) {
                        let found = cx.entity(file, &member).and_then(symbol);
                        found.iter().for_each(|s| add(format!("{name}.{member}"), s));
                    }
                }
                Entity::Member(file, member) => {
                    cx.entity(file, &member).and_then(symbol).iter().for_each(|s| add(name.to_string(), s));
                }
                other => symbol(other).iter().for_each(|s| add(name.to_string(), s)),
            }
        }
        for def in surface::all() {
            let module = if def.name.contains('.') { "" } else { "op." };
            out.calls.insert(format!("{module}{}", def.name), operator(def).params);
        }
        out.modules = modules;
        out
    }

    fn find(&self, path: &str) -> Option<&Vec<Parameter>> {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let full = self.modules.get(first).map(|m| format!("{m}.{rest}"));
        let method = || path.rsplit_once('.').map(|(_, name)| format!("Tensor.{name}"));
        let direct = full.and_then(|p| self.calls.get(&p)).or_else(|| self.calls.get(path));
        // Most likely a tensor's.
        direct.or_else(|| self.calls.get(&method()?))
    }

    /// What is still to be written of the innermost call that is open at the end of a text: `axis=-1)`.
    pub fn rest(&self, text: &str) -> Option<String> {
        let all = lex(text);
        let open_text = |t: &Token| matches!(t.kind, Tok::OpenStr | Tok::FBroken | Tok::FText | Tok::FRawText);
        if all.last().is_some_and(|t| open_text(t) || t.kind == Tok::Comment) {
            return None;
        }
        let tokens: Vec<Token> = all.iter().filter(|t| !t.kind.is_trivia()).copied().collect();
        let mut depth = 0usize;
        // Commas of the call that is open, and where its last argument begins.
        let (mut commas, mut start) = (0usize, tokens.len());
        let mut open = None;
        for (i, t) in tokens.iter().enumerate().rev() {
            if t.kind.is_closer() {
                depth += 1;
            } else if t.kind.closer().is_some() {
                if depth == 0 {
                    open = Some(i).filter(|_| t.kind == Tok::LParen);
                    break;
                }
                depth -= 1;
            } else if t.kind == Tok::Comma && depth == 0 {
                if commas == 0 {
                    start = i + 1;
                }
                commas += 1;
            }
        }
        let open = open?;
        let mut first = open;
        while first > 0 && matches!(tokens[first - 1].kind, Tok::Name | Tok::Dot) {
            first -= 1;
        }
        let path: String = tokens[first..open].iter().map(|t| t.text(text)).collect();
        // A definition is no call.
        if path.is_empty() || first > 0 && matches!(tokens[first - 1].kind, Tok::Def | Tok::Struct) {
            return None;
        }
        let params = self.find(path.trim_start_matches('.')).or_else(|| self.calls.get(&format!("Tensor{path}")))?;
        let begun = tokens.get(if commas == 0 { open + 1 } else { start }..).is_some_and(|arg| !arg.is_empty());
        let given: Vec<&str> = named(&tokens[open + 1..], text);
        let left = params.iter().enumerate().filter(|(i, p)| {
            let positional = !p.keyword_only && *i < commas + usize::from(begun);
            !positional && !given.contains(&p.name.as_str())
        });
        let left: Vec<&str> = left.map(|(_, p)| p.text.as_str()).collect();
        let space = if text.ends_with(',') { " " } else { "" };
        Some(match (left.is_empty(), begun) {
            (true, _) => ")".to_owned(),
            (false, true) => format!(", {})", left.join(", ")),
            (false, false) => format!("{space}{})", left.join(", ")),
        })
    }
}

/// The parameters that some arguments name.
fn named<'t>(args: &[Token], text: &'t str) -> Vec<&'t str> {
    let pairs = args.windows(2).filter(|w| w[0].kind == Tok::Name && w[1].kind == Tok::Assign);
    pairs.map(|w| w[0].text(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_call() {
        let mut known = Signatures::default();
        for name in ["softmax", "concat"] {
            let def = surface::find(name).unwrap_or_else(|| panic!("{name}"));
            known.calls.insert(format!("op.{name}"), operator(def).params);
        }
        let of = |text: &str| known.rest(text).unwrap_or_default();
        assert_eq!(of("op.softmax("), "x, axis=-1)");
        assert_eq!(of("y = op.softmax(f(1, 2)"), ", axis=-1)");
        assert_eq!(of("op.softmax(x,"), " axis=-1)");
        assert_eq!(of("op.softmax(x, axis=2"), ")");
        for text in [
            "",
            "op.softmax",
            "op.softmax(x)",
            "def f(",
            "op.softmax(\"a(",
            "g(",
            "(",
            "[op.softmax(x)",
            "# op.softmax(",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }
}

//! Where a symbol stands: every place that is written as its name, or as what an import calls it, and that stands for it.

use crate::analysis::{Analysis, Place};
use crate::symbol::Symbol;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::FileId;
use tessera_grammar::ast::StmtKind;
use tessera_grammar::token::{Tok, lex};
use tessera_resolve::names::Kind;

/// A place where a symbol stands.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Occurrence {
    pub place: Place,
    /// It is bound or defined there.
    pub binds: bool,
}

impl Analysis<'_> {
    /// All places of a symbol in these files, in their order.
    pub fn occurrences(&self, symbol: &Symbol, files: &[FileId]) -> Vec<Occurrence> {
        let name = self.name(symbol);
        let own = match symbol {
            // Only a parameter can be named outside: by a call.
            Symbol::Local { item, .. } if !self.is_parameter(symbol) => self.file_of(*item),
            _ => None,
        };
        let mut out = BTreeSet::new();
        for &file in files.iter().filter(|f| own.is_none_or(|own| own == **f)) {
            let mut words: BTreeSet<Arc<str>> = self.aliases(file, symbol);
            words.insert(name.clone());
            let text = self.text(file);
            // Whether it could stand there at all is asked before anything is looked up.
            if !words.iter().any(|w| text.contains(&**w)) {
                continue;
            }
            let tokens = lex(&text);
            let here: Vec<_> = tokens.iter().filter(|t| t.kind == Tok::Name && words.contains(t.text(&text))).collect();
            // Members are known by the types of what stands before them.
            if matches!(symbol, Symbol::Field(..) | Symbol::OfTensor(_) | Symbol::Method(_)) {
                let items = here.iter().filter_map(|t| Some(self.item_at(file, t.start as usize)?.0.id(self.db)));
                self.ask_of(&items.collect::<Vec<_>>());
            }
            for token in here {
                let found = self.symbol_at(file, token.start as usize);
                if let Some((place, _)) = found.filter(|(p, s)| s == symbol && p.range() == token.range()) {
                    let binds = self.binds(&place);
                    out.insert(Occurrence { place, binds });
                }
            }
        }
        out.into_iter().collect()
    }

    /// The names under which a file imports a symbol.
    fn aliases(&self, file: FileId, symbol: &Symbol) -> BTreeSet<Arc<str>> {
        let mut out = BTreeSet::new();
        for head in self.heads(file).iter() {
            let Some(item) = self.item(head.id) else { continue };
            for stmt in &item.syntax(self.db).stmts {
                let bound: Vec<&Arc<str>> = match &stmt.kind {
                    StmtKind::Import { alias, .. } => alias.iter().map(|a| &a.text).collect(),
                    StmtKind::FromImport { names, .. } => {
                        names.iter().filter_map(|(_, a)| a.as_ref()).map(|a| &a.text).collect()
                    }
                    _ => vec![],
                };
                let same = bound.into_iter().filter(|name| self.top(file, name).as_ref() == Some(symbol));
                out.extend(same.cloned());
            }
        }
        out
    }

    pub fn is_parameter(&self, symbol: &Symbol) -> bool {
        let Symbol::Local { item, binding } = symbol else { return false };
        self.item(*item).is_some_and(|i| i.names(self.db).binding(*binding).kind == Kind::Parameter)
    }

    /// Whether a name is bound at a place.
    fn binds(&self, place: &Place) -> bool {
        let Some((item, at)) = self.item_at(place.file, place.start) else { return false };
        let bound = item.names(self.db).bindings.iter().any(|b| b.places.iter().any(|s| s.start == at));
        bound || matches!(crate::path::spot(&item.syntax(self.db).stmts, at), Some(crate::path::Spot::Field { .. }))
    }
}

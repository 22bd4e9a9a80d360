//! Another name for what stands under the cursor, wherever it stands.

use crate::analysis::{Analysis, Place};
use crate::path::{Spot, spot};
use crate::symbol::Symbol;
use tessera_base::FileId;
use tessera_grammar::token::{Tok, lex};
use tessera_resolve::names::Reference;

/// The name under the cursor, if it can have another.
///
/// # Errors
/// Why not, in words.
pub fn renamable(cx: &Analysis, file: FileId, byte: usize) -> Result<(Place, Symbol), String> {
    let Some((place, symbol)) = cx.symbol_at(file, byte) else { return Err("no name stands here".into()) };
    let name = cx.name(&symbol);
    let fixed = match &symbol {
        Symbol::Builtin(_) | Symbol::OfTensor(_) | Symbol::Method(_) | Symbol::Module(_) => "is built in",
        Symbol::File(_) => "is a file: rename the file itself",
        _ => {
            let home = cx.definition(&symbol).first().map(|d| d.file);
            match home.and_then(|f| cx.sources.file(f)) {
                Some(f) if f.library => "belongs to the standard library",
                Some(_) => return Ok((place, symbol)),
                None => "is defined nowhere",
            }
        }
    };
    Err(format!("`{name}` {fixed}"))
}

/// The places that get the new name.
///
/// # Errors
/// Why the name would not do, in words.
pub fn rename(cx: &Analysis, file: FileId, byte: usize, to: &str, files: &[FileId]) -> Result<Vec<Place>, String> {
    let (_, symbol) = renamable(cx, file, byte)?;
    let tokens = lex(to);
    let is_name = matches!(&tokens[..], [one] if one.kind == Tok::Name && one.range() == (0..to.len()));
    if !is_name {
        let why = if tokens.len() == 1 && tokens[0].kind.is_keyword() { "a word of the language" } else { "no name" };
        return Err(format!("`{to}` is {why}"));
    }
    let old = cx.name(&symbol);
    let all = cx.occurrences(&symbol, files);
    // What an import calls it keeps its name.
    let places: Vec<Place> =
        all.into_iter().map(|o| o.place).filter(|p| cx.text(p.file).get(p.range()) == Some(&*old)).collect();
    if to != &*old {
        for place in &places {
            if let Some(taken) = taken(cx, place, &symbol, to) {
                return Err(taken);
            }
        }
    }
    Ok(places)
}

/// What has the new name already where the old one stands.
fn taken(cx: &Analysis, place: &Place, symbol: &Symbol, to: &str) -> Option<String> {
    let line = |place: &Place| cx.text(place.file)[..place.start].matches('\n').count() + 1;
    let refused = |what: &str| Some(format!("`{to}` is {what} in line {} of {}", line(place), cx.path(place.file)));
    if let Symbol::Field(id, _) = symbol {
        let def = cx.item(*id)?.struct_def(cx.db).clone()?;
        return def
            .fields
            .iter()
            .any(|f| &*f.name.text == to)
            .then(|| format!("the struct has a field `{to}` already"));
    }
    let (item, at) = cx.item_at(place.file, place.start)?;
    // By a module or a call it is named without being visible.
    if matches!(
        spot(&item.syntax(cx.db).stmts, at),
        Some(Spot::Member { .. } | Spot::Keyword { .. } | Spot::Imported { .. })
    ) {
        return None;
    }
    let names = item.names(cx.db);
    if let Reference::Local(_) = names.seen_from(at, to) {
        return refused("another name there, seen");
    }
    // What stands at the top of a file would hide it, or be hidden.
    let of_file = matches!(symbol, Symbol::Def(_) | Symbol::Struct(_) | Symbol::Variable(..));
    let scope = cx.scope(place.file)?;
    if scope.names.contains_key(to) || scope.variables.contains(to) {
        let used = names.uses.iter().any(|u| &*u.name == to && u.to == Reference::Outside);
        if of_file || used {
            return refused("the name of something else");
        }
    }
    None
}

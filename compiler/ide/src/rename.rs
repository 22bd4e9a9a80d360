//! Another name for what stands under the cursor, wherever it stands.

use crate::analysis::{Analysis, Place};
use crate::path::{Spot, spot};
use crate::symbol::Symbol;
use tessera_base::{FileId, ItemId};
use tessera_core::builtins;
use tessera_grammar::token::{Tok, lex};
use tessera_resolve::names::{BindingId, Kind, Reference};

/// The name under the cursor, if it can have another.
///
/// # Errors
/// Why not, in words.
pub fn renamable(cx: &Analysis, file: FileId, byte: usize) -> Result<(Place, Symbol), String> {
    let Some((place, symbol)) = cx.symbol_at(file, byte) else { return Err("no name stands here".into()) };
    let name = cx.name(&symbol);
    // A name that an import gives to something.
    if cx.text(place.file).get(place.range()).is_some_and(|written| *written != *name) {
        return Ok((place, symbol));
    }
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
    let (here, symbol) = renamable(cx, file, byte)?;
    let tokens = lex(to);
    let is_name = matches!(&tokens[..], [one] if one.kind == Tok::Name && one.range() == (0..to.len()));
    if !is_name {
        let why = if tokens.len() == 1 && tokens[0].kind.is_keyword() { "a word of the language" } else { "no name" };
        return Err(format!("`{to}` is {why}"));
    }
    let name = cx.name(&symbol);
    let written = cx.text(here.file).get(here.range()).map_or_else(|| name.to_string(), str::to_owned);
    // What an import calls it is a name of that file alone; it keeps its own where the thing gets another.
    let old = &*written;
    let all = if *old == *name { cx.occurrences(&symbol, files) } else { cx.occurrences(&symbol, &[here.file]) };
    if let Some(why) = unfit(cx, &symbol, to, files) {
        return Err(why);
    }
    let places: Vec<Place> =
        all.into_iter().map(|o| o.place).filter(|p| cx.text(p.file).get(p.range()) == Some(old)).collect();
    if to != old {
        for place in &places {
            if let Some(taken) = taken(cx, place, &symbol, to) {
                return Err(taken);
            }
        }
    }
    Ok(places)
}

/// Why a name does not suit what is to have it, wherever that stands.
fn unfit(cx: &Analysis, symbol: &Symbol, to: &str, files: &[FileId]) -> Option<String> {
    if matches!(symbol, Symbol::Field(..)) {
        return None;
    }
    let built_in = builtins::FUNCTIONS.contains(&to) || builtins::MODULES.contains(&to) || crate::written::is_type(to);
    if built_in {
        return Some(format!("`{to}` is built in: it would be hidden"));
    }
    let is_size = |item: ItemId, binding: BindingId| {
        cx.item(item).is_some_and(|i| matches!(i.names(cx.db).binding(binding).kind, Kind::Size | Kind::Generic))
    };
    match symbol {
        Symbol::Local { item, binding } if is_size(*item, *binding) => {
            (!to.starts_with(char::is_uppercase)).then(|| format!("a size begins with a capital, and `{to}` does not"))
        }
        // A value of that name would be meant by annotations that name a size.
        _ => files.iter().flat_map(|f| cx.heads(*f).to_vec()).find_map(|head| {
            let item = cx.item(head.id)?;
            let sizes = &item.names(cx.db).bindings;
            let taken = sizes.iter().any(|b| b.kind == Kind::Size && *b.name == *to);
            taken.then(|| format!("`{to}` is a size in {}", cx.path(item.file(cx.db))))
        }),
    }
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

//! Where things are: definitions, uses, callers.

use super::server::Refused;
use super::world::{Ruler, World};
use lsp_types::*;
use tessera_base::FileId;
use tessera_ide::analysis::{Analysis, Place};
use tessera_ide::symbol::Symbol;
use tessera_ide::{calls, imports, rename};

impl World {
    pub fn definition(&mut self, id: FileId, at: Position) -> Vec<Location> {
        let cx = self.analysis(id);
        let Some((_, symbol)) = cx.symbol_at(id, self.byte(&cx.text(id), at)) else { return vec![] };
        cx.definition(&symbol).iter().filter_map(|place| self.location(&cx, place)).collect()
    }

    /// The struct that the value there is one of.
    pub fn type_definition(&mut self, id: FileId, at: Position) -> Vec<Location> {
        let cx = self.analysis(id);
        let byte = self.byte(&cx.text(id), at);
        let Some((item, in_item)) = cx.item_at(id, byte) else { return vec![] };
        let of_item = cx.of_item(item.id(&self.db));
        let noted = of_item.around(in_item).map(|(_, types)| types.to_vec());
        let types = noted.or_else(|| cx.symbol_at(id, byte).map(|(_, s)| cx.types_of(&s))).unwrap_or_default();
        let structs = types.iter().filter_map(|ty| match ty {
            tessera_core::ty::Ty::Struct(s) => Some(Symbol::Struct(tessera_base::ItemId(s.item))),
            _ => None,
        });
        structs.flat_map(|s| cx.definition(&s)).filter_map(|place| self.location(&cx, &place)).collect()
    }

    /// The paths of imports that lead to files.
    pub fn links(&mut self, id: FileId) -> Vec<DocumentLink> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let ruler = Ruler::of(self.units, &text);
        let one = |i: imports::Imported| {
            let target = Some(self.uri(&cx.path(i.file))?);
            Some(DocumentLink { range: ruler.range(i.place.range()), target, tooltip: None, data: None })
        };
        imports::imported(&cx, id).into_iter().filter_map(one).collect()
    }

    pub fn references(&mut self, id: FileId, at: Position, declaration: bool) -> Vec<Location> {
        let files = self.all_files();
        let cx = self.analysis(id);
        let Some((_, symbol)) = cx.symbol_at(id, self.byte(&cx.text(id), at)) else { return vec![] };
        let defined = cx.definition(&symbol);
        let all = cx.occurrences(&symbol, &files);
        let wanted = all.into_iter().filter(|o| declaration || !defined.contains(&o.place));
        wanted.filter_map(|o| self.location(&cx, &o.place)).collect()
    }

    pub fn highlights(&mut self, id: FileId, at: Position) -> Vec<DocumentHighlight> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let Some((_, symbol)) = cx.symbol_at(id, self.byte(&text, at)) else { return vec![] };
        let kind = |binds| if binds { DocumentHighlightKind::Write } else { DocumentHighlightKind::Read };
        let all = cx.occurrences(&symbol, &[id]);
        let one = |o: tessera_ide::occurrences::Occurrence| DocumentHighlight {
            range: self.range(&text, o.place.range()),
            kind: Some(kind(o.binds)),
        };
        all.into_iter().map(one).collect()
    }

    pub fn renamable(&mut self, id: FileId, at: Position) -> Result<PrepareRenameResult, Refused> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let (place, _) = rename::renamable(&cx, id, self.byte(&text, at)).map_err(Refused::because)?;
        let placeholder = text.get(place.range()).unwrap_or("").to_owned();
        let range = self.range(&text, place.range());
        Ok(PrepareRenamePlaceholder { range, placeholder }.into())
    }

    fn called(&self, cx: &Analysis, symbol: &Symbol) -> Option<CallHierarchyItem> {
        let (place, kind) = match symbol {
            Symbol::File(file) => (Place { file: *file, start: 0, end: 0 }, SymbolKind::File),
            Symbol::Struct(_) => (cx.definition(symbol).into_iter().next()?, SymbolKind::Struct),
            _ => (cx.definition(symbol).into_iter().next()?, SymbolKind::Function),
        };
        let location = self.location(cx, &place)?;
        Some(CallHierarchyItem {
            name: cx.name(symbol).to_string(),
            kind,
            tags: None,
            detail: None,
            uri: location.uri,
            range: location.range,
            selection_range: location.range,
            data: None,
        })
    }

    pub fn call_hierarchy(&mut self, id: FileId, at: Position) -> Option<Vec<CallHierarchyItem>> {
        let cx = self.analysis(id);
        let (_, symbol) = cx.symbol_at(id, self.byte(&cx.text(id), at))?;
        matches!(symbol, Symbol::Def(_) | Symbol::Struct(_)).then(|| self.called(&cx, &symbol).into_iter().collect())
    }

    pub fn incoming(&mut self, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyIncomingCall>> {
        let id = self.file(&item.uri)?;
        let files = self.all_files();
        let cx = self.analysis(id);
        let (_, symbol) = cx.symbol_at(id, self.byte(&cx.text(id), item.selection_range.start))?;
        let one = |(caller, places): (Symbol, Vec<Place>)| {
            let from = self.called(&cx, &caller)?;
            let from_ranges = places.iter().map(|p| self.range(&cx.text(p.file), p.range())).collect();
            Some(CallHierarchyIncomingCall { from, from_ranges })
        };
        Some(calls::incoming(&cx, &symbol, &files).into_iter().filter_map(one).collect())
    }

    pub fn outgoing(&mut self, item: &CallHierarchyItem) -> Option<Vec<CallHierarchyOutgoingCall>> {
        let id = self.file(&item.uri)?;
        let cx = self.analysis(id);
        let (_, symbol) = cx.symbol_at(id, self.byte(&cx.text(id), item.selection_range.start))?;
        let one = |(callee, places): (Symbol, Vec<Place>)| {
            let to = self.called(&cx, &callee)?;
            let from_ranges = places.iter().map(|p| self.range(&cx.text(p.file), p.range())).collect();
            Some(CallHierarchyOutgoingCall { to, from_ranges })
        };
        Some(calls::outgoing(&cx, &symbol).into_iter().filter_map(one).collect())
    }
}

//! What is shown of a text: hover, completions, parameters, types between the words, colours, outline, folds.

use super::world::{Ruler, World};
use lsp_types::*;
use tessera_base::FileId;
use tessera_ide::coloring::{Class, coloring};
use tessera_ide::inlays::{self, Sort as InlaySort};
use tessera_ide::outline::{self, Entry};
use tessera_ide::{call, complete, folding, hover};

/// A text in Markdown.
pub fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

impl World {
    pub fn hover(&mut self, id: FileId, at: Position) -> Option<Hover> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let byte = self.byte(&text, at);
        let mut found = hover::hover(&cx, id, byte)?;
        let range = self.range(&text, found.place.range());
        found.markdown.extend(self.kernels_at(id, byte));
        Some(Hover { contents: markdown(found.markdown).into(), range: Some(range) })
    }

    pub fn completions(&mut self, id: FileId, at: Position) -> Option<CompletionResponse> {
        let text = self.analysis(id).text(id);
        let byte = self.byte(&text, at);
        self.touched = true;
        let found = complete::complete(&mut self.db, id, byte)?;
        let range = self.range(&text, found.replaces);
        self.offered = (id, found.all.clone());
        let item = |(i, c): (usize, complete::Completion)| {
            use complete::Sort as S;
            let kind = match c.sort {
                S::Argument | S::Variable => CompletionItemKind::Variable,
                S::Field => CompletionItemKind::Field,
                S::Size | S::Axis => CompletionItemKind::TypeParameter,
                S::Function => CompletionItemKind::Function,
                S::Struct => CompletionItemKind::Struct,
                S::Method => CompletionItemKind::Method,
                S::Attribute => CompletionItemKind::Property,
                S::Module => CompletionItemKind::Module,
                S::Constant => CompletionItemKind::Constant,
                S::Type => CompletionItemKind::Class,
                S::Keyword => CompletionItemKind::Keyword,
            };
            CompletionItem {
                // What is nearer comes first.
                sort_text: Some(format!("{}{}", (b'a' + c.sort as u8) as char, c.label)),
                // A name takes the place of the word there, which every client knows.
                text_edit: (c.sort == S::Argument).then(|| TextEdit { range, new_text: c.label.clone() }.into()),
                label: c.label,
                kind: Some(kind),
                detail: (!c.detail.is_empty()).then_some(c.detail),
                documentation: (!c.doc.is_empty()).then(|| markdown(c.doc).into()),
                data: c.symbol.is_some().then(|| i.into()),
                ..CompletionItem::default()
            }
        };
        let items: Vec<CompletionItem> = found.all.into_iter().enumerate().map(item).collect();
        Some(match found.more {
            true => CompletionList { is_incomplete: true, items, ..CompletionList::default() }.into(),
            false => items.into(),
        })
    }

    /// What was offered last, with what is to be said of it.
    pub fn resolved(&mut self, mut item: CompletionItem) -> CompletionItem {
        let (id, all) = &self.offered;
        let at = item.data.as_ref().and_then(|d| d.as_u64()).and_then(|i| all.get(i as usize));
        if let Some(c) = at.filter(|c| c.label == item.label) {
            let c = complete::resolved(&self.analysis(*id), c);
            item.detail = (!c.detail.is_empty()).then_some(c.detail);
            item.documentation = (!c.doc.is_empty()).then(|| markdown(c.doc).into());
        }
        item
    }

    pub fn signature(&mut self, id: FileId, at: Position) -> Option<SignatureHelp> {
        let cx = self.analysis(id);
        let found = call::writing(&cx, id, self.byte(&cx.text(id), at))?;
        let (label, places) = found.call.text();
        let in_label = |(start, end): (usize, usize)| {
            let ruler = Ruler::of(tessera_ide::lines::Units::Utf16, &label);
            let (start, end) = (ruler.position(start).character, ruler.position(end).character);
            ParameterInformation { label: ParameterInformationLabel::Tuple((start, end)), documentation: None }
        };
        let parameters = places.into_iter().map(in_label).collect();
        let active = found.active.map(|i| ActiveParameter::Int(i as u32));
        let documentation = (!found.call.doc.is_empty()).then(|| markdown(found.call.doc.clone()).into());
        let one = SignatureInformation {
            label: label.clone(),
            documentation,
            parameters: Some(parameters),
            active_parameter: active,
        };
        Some(SignatureHelp { signatures: vec![one], active_signature: Some(0), active_parameter: active })
    }

    pub fn inlays(&mut self, id: FileId, range: Range) -> Vec<InlayHint> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let kept = self.found.get(&id).map(|f| f.kept.clone()).unwrap_or_default();
        let ruler = Ruler::of(self.units, &text);
        let found = inlays::inlays(&cx, id, self.bytes(&text, range), &kept);
        let one = |i: inlays::Inlay| InlayHint {
            position: ruler.position(i.at),
            label: i.text.clone().into(),
            kind: (i.sort == InlaySort::Type).then_some(InlayHintKind::Type),
            text_edits: None,
            tooltip: (i.text != i.whole).then(|| i.whole.clone().into()),
            padding_left: Some(i.sort == InlaySort::Check),
            padding_right: None,
            data: None,
        };
        let mut all: Vec<InlayHint> = found.into_iter().map(one).collect();
        all.extend(self.kernel_hints(id, range));
        all
    }

    /// Of a part of a text, or of all of it.
    pub fn tokens(&mut self, id: FileId, range: Option<Range>) -> SemanticTokens {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let part = range.map_or(0..text.len(), |r| self.bytes(&text, r));
        let ruler = Ruler::of(self.units, &text);
        let (mut line, mut start) = (0, 0);
        let mut data = vec![];
        for token in coloring(&cx, id, part) {
            // A token is in one line: what spans several is cut.
            let mut at = token.range.start;
            for piece in text[token.range.clone()].split_inclusive(['\n', '\r']) {
                let shown = piece.trim_end_matches(['\n', '\r']);
                let range = ruler.range(at..at + shown.len());
                at += piece.len();
                if range.start == range.end {
                    continue;
                }
                let same = range.start.line == line;
                data.push(SemanticToken {
                    delta_line: range.start.line - line,
                    delta_start: if same { range.start.character - start } else { range.start.character },
                    length: range.end.character - range.start.character,
                    token_type: token.class as u32,
                    token_modifiers_bitset: u32::from(token.declares) | u32::from(token.built_in) << 1,
                });
                (line, start) = (range.start.line, range.start.character);
            }
        }
        SemanticTokens { result_id: None, data }
    }

    /// The colours of a whole text, remembered under a name.
    pub fn all_tokens(&mut self, id: FileId) -> SemanticTokens {
        let mut all = self.tokens(id, None);
        let last = self.colored.get(&id).and_then(|(name, _)| name.parse::<u64>().ok()).unwrap_or(0);
        let name = (last + 1).to_string();
        all.result_id = Some(name.clone());
        self.colored.insert(id, (name, numbers(&all.data)));
        all
    }

    /// What has changed of the colours since an answer, where that is the last one; else all of them.
    pub fn changed_tokens(
        &mut self,
        id: FileId,
        since: &str,
    ) -> std::result::Result<SemanticTokensDelta, SemanticTokens> {
        let before = self.colored.get(&id).filter(|(name, _)| name == since).map(|(_, before)| before.clone());
        let all = self.all_tokens(id);
        let Some(before) = before else { return Err(all) };
        let now = numbers(&all.data);
        let same = |pairs: &mut dyn Iterator<Item = (&u32, &u32)>| pairs.take_while(|(a, b)| a == b).count();
        let start = same(&mut before.iter().zip(&now));
        let most = before.len().min(now.len()) - start;
        let end = same(&mut before.iter().rev().zip(now.iter().rev())).min(most);
        let data = now[start..now.len() - end].to_vec();
        let delete_count = (before.len() - end - start) as u32;
        let edits = match delete_count == 0 && data.is_empty() {
            true => vec![],
            false => vec![SemanticTokensEdit { start: start as u32, delete_count, data: Some(data) }],
        };
        Ok(SemanticTokensDelta { result_id: all.result_id, edits })
    }

    pub fn outline(&mut self, id: FileId) -> Vec<DocumentSymbol> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let ruler = Ruler::of(self.units, &text);
        outline::outline(&cx, id).into_iter().map(|e| symbol(e, &ruler)).collect()
    }

    /// The definitions of all files whose names have the letters of a text in their order.
    pub fn search(&mut self, query: &str) -> Vec<SymbolInformation> {
        const SHOWN: usize = 500;
        let mut out = vec![];
        for id in self.all_files() {
            let cx = self.analysis(id);
            for entry in outline::outline(&cx, id).into_iter().filter(|e| has_letters(&e.name, query)) {
                let Some(location) = self.location(&cx, &entry.at) else { continue };
                #[allow(deprecated, reason = "the field has to be there")]
                out.push(SymbolInformation {
                    deprecated: None,
                    location,
                    base_symbol_information: BaseSymbolInformation {
                        name: entry.name.to_string(),
                        kind: kind(entry.sort),
                        tags: None,
                        container_name: Some(cx.path(id).rsplit('/').next().unwrap_or("").to_owned()),
                    },
                });
            }
            if out.len() > SHOWN {
                break;
            }
        }
        out
    }

    pub fn folds(&mut self, id: FileId) -> Vec<FoldingRange> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let ruler = Ruler::of(self.units, &text);
        let one = |f: folding::Fold| {
            let range = ruler.range(f.range);
            let kind = match f.sort {
                folding::Sort::Code => None,
                folding::Sort::Comment => Some(FoldingRangeKind::Comment),
                folding::Sort::Imports => Some(FoldingRangeKind::Imports),
            };
            let (start_line, end_line) = (range.start.line, range.end.line);
            FoldingRange { start_line, end_line, kind, ..FoldingRange::default() }
        };
        folding::folds(&cx, id).into_iter().map(one).collect()
    }

    pub fn selection(&mut self, id: FileId, at: Position) -> SelectionRange {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let ruler = Ruler::of(self.units, &text);
        let around = folding::selections(&cx, id, self.byte(&text, at));
        let mut out: Option<Box<SelectionRange>> = None;
        for range in around.into_iter().rev() {
            out = Some(Box::new(SelectionRange { range: ruler.range(range), parent: out }));
        }
        out.map_or_else(|| SelectionRange { range: Range { start: at, end: at }, parent: None }, |o| *o)
    }
}

fn kind(sort: outline::Sort) -> SymbolKind {
    match sort {
        outline::Sort::Function => SymbolKind::Function,
        outline::Sort::Struct => SymbolKind::Struct,
        outline::Sort::Field => SymbolKind::Field,
        outline::Sort::Variable => SymbolKind::Variable,
    }
}

fn symbol(e: Entry, ruler: &Ruler) -> DocumentSymbol {
    let children: Vec<DocumentSymbol> = e.inner.into_iter().map(|e| symbol(e, ruler)).collect();
    // A client refuses a name that lies outside of what it names.
    let range = e.place.start.min(e.at.start)..e.place.end.max(e.at.end);
    #[allow(deprecated, reason = "the field has to be there")]
    DocumentSymbol {
        name: e.name.to_string(),
        detail: (!e.detail.is_empty()).then_some(e.detail),
        kind: kind(e.sort),
        tags: None,
        deprecated: None,
        range: ruler.range(range),
        selection_range: ruler.range(e.at.range()),
        children: (!children.is_empty()).then_some(children),
    }
}

/// Tokens as the protocol counts them.
fn numbers(tokens: &[SemanticToken]) -> Vec<u32> {
    let one = |t: &SemanticToken| [t.delta_line, t.delta_start, t.length, t.token_type, t.token_modifiers_bitset];
    tokens.iter().flat_map(one).collect()
}

/// Whether a name has the letters of a query in their order, whatever their case.
fn has_letters(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|q| letters.any(|c| c == q))
}

/// The names of classes and modifiers, in the order of their numbers.
pub fn legend() -> SemanticTokensLegend {
    let name = |c: &Class| {
        let name = match c {
            Class::Keyword => "keyword",
            Class::Number => "number",
            Class::String => "string",
            Class::Comment => "comment",
            Class::Operator => "operator",
            Class::Decorator => "decorator",
            Class::Function => "function",
            Class::Method => "method",
            Class::Struct => "struct",
            Class::Type => "type",
            Class::TypeParameter => "typeParameter",
            Class::Parameter => "parameter",
            Class::Variable => "variable",
            Class::Property => "property",
            Class::Namespace => "namespace",
        };
        name.to_owned()
    };
    SemanticTokensLegend {
        token_types: Class::ALL.iter().map(name).collect(),
        token_modifiers: vec!["declaration".into(), "defaultLibrary".into()],
    }
}

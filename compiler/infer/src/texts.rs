//! Texts on their way into the database: files cut into items, imports found and loaded.

use crate::careless;
use crate::db::{
    Before, Database, File, Item, ItemHead, ItemKind, ItemText, MODEL, Prompt, Target, Texts, file_of, item_of,
    model_name, path_of,
};
use crate::session::on_cores;
use salsa::{Durability, Setter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Diagnostic, ItemId, bug};
use tessera_grammar::ast::{StmtKind, StructDef};
use tessera_grammar::{ParsedItem, RawKind, parse_item, split, split_again};
use tessera_resolve::facts::{ItemFacts, item_facts};
use tessera_resolve::functions::{FnLike, FnSig, functions};
use tessera_resolve::names::{Kind, Names, Reference, names};
use tessera_resolve::source::{FileId, Loaded, Loader, SourceMap, SourceText};

/// On the way through the files that import each other.
struct Walk {
    /// From the first to where it is.
    path: Vec<FileId>,
    done: BTreeSet<FileId>,
    /// Files that got another text.
    changed: BTreeSet<FileId>,
}

/// What the text of an item says by itself.
struct Read {
    syntax: Arc<ParsedItem>,
    functions: Arc<BTreeMap<u32, Arc<FnLike>>>,
    names: Arc<Names>,
    outside: Arc<BTreeSet<Arc<str>>>,
    facts: Arc<ItemFacts>,
    signature: Option<Arc<FnSig>>,
    struct_def: Option<Arc<StructDef>>,
    careless: Arc<[Diagnostic]>,
}

fn read(id: ItemId, text: &str) -> Read {
    let syntax = parse_item(text, id);
    let functions = functions(&syntax);
    let names = names(&syntax.stmts);
    let outside = names.uses.iter().filter(|u| u.to == Reference::Outside).map(|u| &u.name);
    let sizes = names.bindings.iter().filter(|b| b.kind == Kind::Size).map(|b| &b.name);
    let outside = Arc::new(outside.chain(sizes).cloned().collect());
    let facts = Arc::new(item_facts(&syntax.stmts));
    let signature = functions.values().find(|f| !f.nested).map(|f| f.sig.clone());
    let struct_def = syntax.stmts.iter().find_map(|s| match &s.kind {
        StmtKind::Struct(def) => Some(def.clone()),
        _ => None,
    });
    let careless = careless::of_item(&syntax.stmts, &names, text).into();
    let (syntax, functions, names) = (Arc::new(syntax), Arc::new(functions), Arc::new(names));
    Read { syntax, functions, names, outside, facts, signature, struct_def, careless }
}

impl Database {
    /// A new file without text.
    pub fn add_file(&mut self, path: &str) -> FileId {
        self.add(path, None, None)
    }

    /// A new input of a prompt, without text.
    pub fn add_input(&mut self, path: &str, prompt: &mut Option<Prompt>, before: Option<Arc<Before>>) -> FileId {
        Arc::make_mut(&mut self.texts).prompt = true;
        let module = before.as_ref().map(|b| b.module);
        let id = self.add(path, module, before);
        let Some(file) = file_of(self, id) else { return id };
        let prompt = match *prompt {
            Some(p) => {
                p.set_latest(self).to(file);
                p
            }
            None => *prompt.insert(Prompt::new(self, file)),
        };
        file.set_prompt(self).to(Some(prompt));
        id
    }

    fn add(&mut self, path: &str, module: Option<FileId>, before: Option<Arc<Before>>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let (module, none) = (module.unwrap_or(id), Arc::from([]));
        let file = File::builder(id, path.into(), module, false, none, Arc::from([]), before, None, Arc::default());
        let file = file.durability(Durability::HIGH).new(self);
        Arc::make_mut(&mut self.files).push(file);
        let texts = Arc::make_mut(&mut self.texts);
        texts.files.push("".into());
        texts.cut.push(Arc::default());
        id
    }

    /// Lets diagnostics show another text than the one that is checked. Both have the same
    /// length.
    pub fn show_text(&mut self, id: FileId, text: &str) {
        if let Some(shown) = Arc::make_mut(&mut self.texts).files.get_mut(id.0 as usize) {
            *shown = text.into();
        }
    }

    /// The file of a path.
    pub fn file_at(&self, path: &str) -> Option<FileId> {
        self.files.iter().find(|f| **f.path(self) == *path).map(|f| f.id(self))
    }

    /// Gives a file a text. Items that did not change are left alone.
    pub fn set_text(&mut self, id: FileId, text: &str) {
        let Some(file) = file_of(self, id) else { return };
        let old = file.heads(self).clone();
        let cut = self.texts.cut.get(id.0 as usize).cloned().unwrap_or_default();
        let pieces = match &*cut {
            Some((before, pieces)) => split_again(before, pieces, text),
            None => split(text),
        };
        let raw: Vec<(ItemKind, Option<Arc<str>>, &str)> = pieces
            .items
            .iter()
            .map(|i| {
                let kind = match i.kind {
                    RawKind::Def => ItemKind::Def,
                    RawKind::Struct => ItemKind::Struct,
                    RawKind::Stmt => ItemKind::Stmt,
                };
                (kind, i.name.clone(), &text[i.range.start as usize..i.range.end as usize])
            })
            .collect();
        let reused = self.reuse(&old, &raw);
        let kept: BTreeSet<ItemId> = reused.iter().flatten().copied().collect();
        let texts = Arc::make_mut(&mut self.texts);
        if !texts.prompt {
            for id in old.iter().map(|h| h.id).filter(|id| !kept.contains(id)) {
                texts.items[id.0 as usize].start = u32::MAX;
                texts.free.push(id);
            }
        }
        let mut heads = vec![];
        let mut changed: Vec<(ItemId, &str)> = vec![];
        for ((kind, name, piece), (reuse, range)) in
            raw.into_iter().zip(reused.into_iter().zip(pieces.items.iter().map(|i| &i.range)))
        {
            let item_id = self.number_of(reuse);
            if item_of(self, item_id).is_none_or(|item| **item.text(self) != *piece || item.file(self) != id) {
                changed.push((item_id, piece));
            }
            Arc::make_mut(&mut self.texts).items[item_id.0 as usize].start = range.start;
            heads.push(ItemHead { id: item_id, kind, name });
        }
        let read = on_cores(&changed, || (), |(), (id, piece)| read(*id, piece));
        for ((item_id, piece), read) in changed.iter().zip(read) {
            self.set_item(*item_id, id, piece, read);
        }
        if *old != *heads {
            file.set_heads(self).to(heads.into());
        }
        if **file.diagnostics(self) != *pieces.diagnostics {
            file.set_diagnostics(self).to(pieces.diagnostics.clone().into());
        }
        self.show_text(id, text);
        let texts = Arc::make_mut(&mut self.texts);
        texts.cut[id.0 as usize] = Arc::new(Some((texts.files[id.0 as usize].clone(), pieces)));
    }

    /// The number of an item: of the one that it continues, of one that was removed, or a new one.
    fn number_of(&mut self, continues: Option<ItemId>) -> ItemId {
        let texts = Arc::make_mut(&mut self.texts);
        continues.or_else(|| texts.free.pop()).unwrap_or_else(|| {
            texts.items.push(ItemText { start: 0, imports: None });
            ItemId(texts.items.len() as u32 - 1)
        })
    }

    /// Gives an item what was read of its text. Numbers are given in order, so a new one is that of the next item.
    fn set_item(&mut self, id: ItemId, file: FileId, text: &str, read: Read) {
        let Read { syntax, functions, names, outside, facts, signature, struct_def, careless } = read;
        Arc::make_mut(&mut self.texts).items[id.0 as usize].imports = None;
        let Some(item) = item_of(self, id) else {
            if id.0 as usize != self.items.len() {
                bug!("an item has the number {}, and there are {}", id.0, self.items.len());
            }
            let new = Item::builder(
                id,
                file,
                text.into(),
                syntax,
                functions,
                names,
                outside,
                facts,
                signature,
                struct_def,
                careless,
            );
            let (high, low) = (Durability::HIGH, Durability::LOW);
            let new = new.durability(low).id_durability(high).file_durability(high).outside_durability(high);
            let new = new.facts_durability(high).signature_durability(high).struct_def_durability(high);
            let item = new.new(self);
            Arc::make_mut(&mut self.items).push(item);
            return;
        };
        item.set_text(self).to(text.into());
        item.set_syntax(self).to(syntax);
        item.set_functions(self).to(functions);
        item.set_names(self).to(names);
        item.set_careless(self).to(careless);
        if *item.outside(self) != outside {
            item.set_outside(self).to(outside);
        }
        if *item.facts(self) != facts {
            item.set_facts(self).to(facts);
        }
        if *item.signature(self) != signature {
            item.set_signature(self).to(signature);
        }
        if *item.struct_def(self) != struct_def {
            item.set_struct_def(self).to(struct_def);
        }
        if item.file(self) != file {
            item.set_file(self).to(file);
        }
    }

    /// For each new piece the old item that it continues: definitions by name, statements by
    /// their text from both ends, and those between in order.
    fn reuse(&self, old: &[ItemHead], raw: &[(ItemKind, Option<Arc<str>>, &str)]) -> Vec<Option<ItemId>> {
        let mut out = vec![None; raw.len()];
        let mut named: BTreeMap<(bool, Arc<str>), Vec<ItemId>> = BTreeMap::new();
        for head in old.iter().rev() {
            if let (Some(name), true) = (&head.name, head.kind != ItemKind::Stmt) {
                named.entry((head.kind == ItemKind::Def, name.clone())).or_default().push(head.id);
            }
        }
        for (slot, (kind, name, _)) in out.iter_mut().zip(raw) {
            if let (Some(name), true) = (name, *kind != ItemKind::Stmt) {
                *slot = named.get_mut(&(*kind == ItemKind::Def, name.clone())).and_then(Vec::pop);
            }
        }
        let text = |id: ItemId| item_of(self, id).map_or_else(|| "".into(), |i| i.text(self).clone());
        let plain = |kind: ItemKind, name: &Option<Arc<str>>| kind == ItemKind::Stmt || name.is_none();
        let before: Vec<(ItemId, Arc<str>)> =
            old.iter().filter(|h| plain(h.kind, &h.name)).map(|h| (h.id, text(h.id))).collect();
        let after: Vec<usize> = (0..raw.len()).filter(|&i| plain(raw[i].0, &raw[i].1)).collect();
        let same = |a: usize, b: usize| *before[a].1 == *raw[after[b]].2;
        let most = before.len().min(after.len());
        let head = (0..most).take_while(|&i| same(i, i)).count();
        let tail = (0..most - head).take_while(|&i| same(before.len() - 1 - i, after.len() - 1 - i)).count();
        for i in 0..head {
            out[after[i]] = Some(before[i].0);
        }
        for i in 0..tail {
            out[after[after.len() - 1 - i]] = Some(before[before.len() - 1 - i].0);
        }
        for i in head..(most - tail).max(head) {
            out[after[i]] = Some(before[i].0);
        }
        out
    }

    /// Loads the files that a file imports, and those that they import. Cycles are cut and
    /// kept as [`Target::Cycle`]. Gives the modules whose text is another one than before, and those that
    /// import them: what they computed is of the past.
    pub fn load_imports(&mut self, id: FileId, loader: &dyn Loader) -> BTreeSet<FileId> {
        let mut walk = Walk { path: vec![], done: BTreeSet::new(), changed: BTreeSet::new() };
        self.load(id, loader, &mut walk);
        let modules: Vec<File> = self.files.iter().copied().filter(|f| f.prompt(self).is_none()).collect();
        loop {
            let reaches = |f: &&File| {
                let found = |t: &Target| matches!(t, Target::File(id) if walk.changed.contains(id));
                !walk.changed.contains(&f.id(self)) && f.imports(self).values().any(found)
            };
            let more: Vec<FileId> = modules.iter().filter(reaches).map(|f| f.id(self)).collect();
            if more.is_empty() {
                return walk.changed;
            }
            walk.changed.extend(more);
        }
    }

    fn load(&mut self, id: FileId, loader: &dyn Loader, walk: &mut Walk) {
        let Some(file) = file_of(self, id) else { return };
        if !walk.done.insert(id) {
            return;
        }
        let wanted = self.wanted(file);
        let importer = path_of(self, id);
        walk.path.push(id);
        let mut imports = file.before(self).as_ref().map_or_else(BTreeMap::new, |b| BTreeMap::clone(&b.imports));
        for module in wanted {
            let (model, library) = (module.strip_prefix(MODEL), module.strip_prefix("std."));
            let loaded = match (model, library) {
                (Some(model), _) => loader.model(&path_of(self, walk.path[0]), model).map(Some),
                (_, Some(name)) => Ok(loader.std(name)),
                _ => Ok(loader.sibling(&importer, &module)),
            };
            let target = match loaded {
                Err(refused) => Target::Refused(refused),
                Ok(None) => Target::Missing,
                Ok(Some(loaded)) => self.target(loaded, loader, walk),
            };
            let library = library.or(model);
            if let (Some(_), Target::File(id)) = (library, &target)
                && let Some(of_library) = file_of(self, *id).filter(|f| !f.library(self))
            {
                of_library.set_library(self).to(true);
            }
            imports.insert(module, target);
        }
        walk.path.pop();
        if **file.imports(self) != imports {
            file.set_imports(self).to(Arc::new(imports));
        }
    }

    /// The dotted names of the files that a file imports. Only items that changed are read.
    fn wanted(&mut self, file: File) -> BTreeSet<Arc<str>> {
        let heads = file.heads(self).clone();
        let imports = |texts: &Texts, id: ItemId| texts.items.get(id.0 as usize).and_then(|i| i.imports.clone());
        let stale = heads.iter().filter(|h| imports(&self.texts, h.id).is_none());
        let stale: Vec<Item> = stale.filter_map(|h| item_of(self, h.id)).collect();
        for item in stale {
            let facts = item.facts(self);
            let files = facts.imports.iter().flat_map(|i| i.files()).chain(facts.std_modules.iter().cloned());
            let files: Arc<[Arc<str>]> = files.chain(facts.models.iter().map(|path| model_name(path))).collect();
            let id = item.id(self);
            Arc::make_mut(&mut self.texts).items[id.0 as usize].imports = Some(files);
        }
        heads.iter().filter_map(|h| imports(&self.texts, h.id)).flat_map(|i| i.to_vec()).collect()
    }

    fn target(&mut self, loaded: Loaded, loader: &dyn Loader, walk: &mut Walk) -> Target {
        let path = &walk.path;
        let known = self.file_at(&loaded.path);
        if let Some(start) = known.and_then(|id| path.iter().position(|p| *p == id)) {
            return Target::Cycle(path[start..].iter().map(|f| path_of(self, *f)).collect());
        }
        if path.len() > 64 {
            return Target::Cycle(path.iter().map(|f| path_of(self, *f)).collect());
        }
        let id = known.unwrap_or_else(|| self.add_file(&loaded.path));
        let changed = self.texts.files.get(id.0 as usize).is_some_and(|text| *text != loaded.text);
        if changed {
            self.set_text(id, &loaded.text);
            walk.changed.insert(id);
        }
        self.load(id, loader, walk);
        Target::File(id)
    }

    /// A picture of all texts for rendering.
    pub fn source_map(&self) -> SourceMap {
        let text = |(f, text): (&File, &Arc<str>)| SourceText {
            path: f.path(self).clone(),
            text: text.clone(),
            library: f.library(self),
        };
        let items = self.items.iter().zip(&self.texts.items).map(|(item, place)| (item.file(self), place.start));
        SourceMap::new(self.files.iter().zip(&self.texts.files).map(text).collect(), items.collect())
    }
}

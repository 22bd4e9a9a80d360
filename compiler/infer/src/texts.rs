//! Texts on their way into the database: files cut into items, imports found and loaded.

use crate::db::{
    Before, Database, Db, File, FileEntry, Item, ItemEntry, ItemHead, ItemKind, MODEL, Prompt, Target, facts, file_of,
    item_of, model_name, path_of,
};
use tessera_resolve::source::{FileId, Loaded, Loader, SourceMap, SourceText};
use salsa::Setter;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::ItemId;
use tessera_grammar::{RawKind, split};

/// On the way through the files that import each other.
struct Walk {
    /// From the first to where it is.
    path: Vec<FileId>,
    done: BTreeSet<FileId>,
    /// Files that got another text.
    changed: BTreeSet<FileId>,
}

impl Database {
    /// A new file without text.
    pub fn add_file(&mut self, path: &str) -> FileId {
        self.add(path, None, None)
    }

    /// A new input of a prompt, without text.
    pub fn add_input(&mut self, path: &str, prompt: &mut Option<Prompt>, before: Option<Arc<Before>>) -> FileId {
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
        let id = FileId(self.tables().files.len() as u32);
        let file = File::new(self, id, Arc::from([]), before, None, Arc::default());
        let entry = FileEntry {
            path: path.into(),
            text: "".into(),
            file,
            module: module.unwrap_or(id),
            diagnostics: Arc::from([]),
            library: false,
        };
        self.tables().files.push(entry);
        id
    }

    /// Lets diagnostics show another text than the one that is checked. Both have the same
    /// length.
    pub fn show_text(&mut self, id: FileId, text: &str) {
        if let Some(entry) = self.tables().files.get_mut(id.0 as usize) {
            entry.text = text.into();
        }
    }

    /// The file of a path.
    pub fn file_at(&self, path: &str) -> Option<FileId> {
        self.tables().files.iter().position(|e| *e.path == *path).map(|i| FileId(i as u32))
    }

    /// Gives a file a text. Items that did not change are left alone.
    pub fn set_text(&mut self, id: FileId, text: &str) {
        let Some(file) = file_of(self, id) else { return };
        let old = file.heads(self).clone();
        let pieces = split(text);
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
        let mut heads = vec![];
        for ((kind, name, piece), (reuse, range)) in
            raw.into_iter().zip(reused.into_iter().zip(pieces.items.iter().map(|i| &i.range)))
        {
            let item_id = match reuse {
                Some(item_id) => {
                    let item = item_of(self, item_id).filter(|i| **i.text(self) != *piece);
                    if let Some(item) = item {
                        item.set_text(self).to(piece.into());
                    }
                    if let Some(entry) = self.tables().items.get_mut(item_id.0 as usize) {
                        entry.start = range.start;
                        if item.is_some() {
                            entry.imports = None;
                        }
                    }
                    item_id
                }
                None => {
                    let item_id = ItemId(self.tables().items.len() as u32);
                    let item = Item::new(self, item_id, piece.into());
                    self.tables().items.push(ItemEntry { item, file: id, start: range.start, imports: None });
                    item_id
                }
            };
            heads.push(ItemHead { id: item_id, kind, name });
        }
        if *old != *heads {
            file.set_heads(self).to(heads.into());
        }
        if let Some(entry) = self.tables().files.get_mut(id.0 as usize) {
            entry.text = text.into();
            entry.diagnostics = pieces.diagnostics.into();
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
        let files: Vec<File> = self.tables().files.iter().map(|e| e.file).collect();
        let modules: Vec<File> = files.into_iter().filter(|f| f.prompt(self).is_none()).collect();
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
                && let Some(entry) = self.tables().files.get_mut(id.0 as usize)
            {
                entry.library = true;
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
        let stale: Vec<(ItemId, Item)> = {
            let tables = self.tables();
            let entries = heads.iter().filter_map(|h| Some((h.id, tables.items.get(h.id.0 as usize)?)));
            entries.filter(|(_, e)| e.imports.is_none()).map(|(id, e)| (id, e.item)).collect()
        };
        for (id, item) in stale {
            let facts = facts(self, item);
            let files = facts.imports.iter().flat_map(|i| i.files()).chain(facts.std_modules.iter().cloned());
            let files = files.chain(facts.models.iter().map(|path| model_name(path)));
            let files: Arc<[Arc<str>]> = files.collect();
            if let Some(entry) = self.tables().items.get_mut(id.0 as usize) {
                entry.imports = Some(files);
            }
        }
        let tables = self.tables();
        let entries = heads.iter().filter_map(|h| tables.items.get(h.id.0 as usize));
        entries.flat_map(|e| e.imports.iter().flat_map(|i| i.iter().cloned())).collect()
    }

    fn target(&mut self, loaded: Loaded, loader: &dyn Loader, walk: &mut Walk) -> Target {
        let path = &walk.path;
        let known = self.tables().files.iter().position(|e| e.path == loaded.path).map(|i| FileId(i as u32));
        if let Some(start) = known.and_then(|id| path.iter().position(|p| *p == id)) {
            return Target::Cycle(path[start..].iter().map(|f| path_of(self, *f)).collect());
        }
        if path.len() > 64 {
            return Target::Cycle(path.iter().map(|f| path_of(self, *f)).collect());
        }
        let id = known.unwrap_or_else(|| self.add_file(&loaded.path));
        let changed = self.tables().files.get(id.0 as usize).is_some_and(|e| e.text != loaded.text);
        if changed {
            self.set_text(id, &loaded.text);
            walk.changed.insert(id);
        }
        self.load(id, loader, walk);
        Target::File(id)
    }

    /// A picture of all texts for rendering.
    pub fn source_map(&self) -> SourceMap {
        let tables = self.tables();
        let text = |f: &FileEntry| SourceText { path: f.path.clone(), text: f.text.clone(), library: f.library };
        let items = tables.items.iter().map(|i| (i.file, i.start));
        SourceMap::new(tables.files.iter().map(text).collect(), items.collect())
    }
}

//! Explicit tile programs: the body of the kernel is traced once, for all programs of the grid.
//!
//! Shapes are concrete here, so which tile each program reads and writes is computed for every
//! program before anything runs: tiles outside their tensor, two programs that write one tile,
//! and reads of what another program writes are errors. The body then becomes tensor code with
//! the grid as leading dims ([`super::tile_grid`]), or a loop over the programs where it has a part
//! that cannot.

use super::graph::Level;
use super::ranges::Range;
use super::scalar::{Kind, Known};
use super::stmt::Flow;
use super::tile_grid;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use std::collections::BTreeMap;
use tessera_base::{Code, DType, Span, bug};
use tessera_core::ir::*;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Id, expand};

/// Programs of one grid.
const PROGRAMS_MAX: u64 = 1 << 20;
/// Positions that the checks of one access compute, at most; beyond, only the run itself checks.
const CHECKS_MAX: u64 = 1 << 20;

/// Where the tracer is in a tile program.
pub struct Running {
    grid: Vec<u64>,
    /// The number of the program in its graph, row-major over the grid, and its nesting depth.
    number: NodeId,
    level: u32,
    ids: Vec<Scalar>,
    outputs: Vec<LocalId>,
    stores: Vec<Store>,
    loads: Vec<Load>,
}

/// One `tile.store`.
struct Store {
    output: LocalId,
    tile: Tensor,
    shape: Vec<u64>,
    /// Which tile each program writes: positions dim by dim, per program.
    at: Vec<Vec<i64>>,
    span: Span,
}

/// A `tile.load` from an output.
struct Load {
    output: LocalId,
    shape: Vec<u64>,
    at: Vec<Vec<i64>>,
    /// Stores that come before it.
    after: usize,
    span: Span,
}

impl Tracer<'_> {
    /// A call of a tile program, whose parameters are in the frame already.
    pub(super) fn programs(&mut self, f: &FnInst, p: &TileProgram) -> R<Value> {
        let span = f.span;
        let mut grid = vec![];
        for count in &p.grid {
            grid.push(self.int(count, "the number of programs")?.max(0) as u64);
        }
        let total = grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g)).filter(|n| *n <= PROGRAMS_MAX);
        let Some(total) = total else {
            let message = format!("a grid of {grid:?} has more than {PROGRAMS_MAX} programs");
            return Err(self.error(Code::E0901, span, message));
        };
        if total > 0 {
            let outer = self.tiles.take();
            let done = self.run_programs(f, p, grid, total, span);
            self.tiles = outer;
            done?;
        }
        let mut values = vec![];
        for l in &p.outputs {
            values.push(self.frame().get(l).cloned().unwrap_or(Value::None));
        }
        Ok(if values.len() == 1 { values.swap_remove(0) } else { Value::record(values) })
    }

    fn run_programs(&mut self, f: &FnInst, p: &TileProgram, grid: Vec<u64>, total: u64, span: Span) -> R<()> {
        let before = self.frame().clone();
        self.levels.push(Level::default());
        let number = self.level().input("program", NodeType::new(vec![], DType::I64), false, span);
        let level = self.levels.len() as u32 - 1;
        let ids = self.program_ids(number, &grid, span);
        let outputs = p.outputs.clone();
        self.tiles = Some(Running { grid: grid.clone(), number, level, ids, outputs, stores: vec![], loads: vec![] });
        let traced = self.exec(&f.body);
        let program = self.tiles.take();
        let checked = match (&traced, &program) {
            (Ok(_), Some(program)) => self.races(program),
            _ => Ok(()),
        };
        let tiles: Vec<NodeId> = program
            .iter()
            .flat_map(|p| &p.stores)
            .map(|s| s.tile)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|t| self.node(t))
            .collect();
        let body = self.levels.pop();
        *self.frame() = before;
        if let Flow::Break | Flow::Continue = traced? {
            return Err(self.error(Code::E0999, span, "a program ends outside a loop"));
        }
        checked?;
        let (Some(program), Some(body)) = (program, body) else {
            return Err(self.error(Code::E0999, span, "a tile program without a body"));
        };
        let stacked = self.for_all(body, number, &grid, &tiles, span)?;
        for (store, tiles) in program.stores.iter().zip(stacked) {
            self.place_tiles(store, tiles, total)?;
        }
        Ok(())
    }

    /// The coordinates of a program: its number taken apart.
    fn program_ids(&mut self, number: NodeId, grid: &[u64], span: Span) -> Vec<Scalar> {
        let mut out = vec![];
        for (a, &count) in grid.iter().enumerate() {
            let stride: u64 = grid[a + 1..].iter().product();
            let mut b = self.adder("program_id", span);
            let constant =
                |b: &mut super::graph::Adder, n: u64| expand::full(b, &[], DType::I64, prim::Scalar::I(n as i64));
            let by = constant(&mut b, stride.max(1));
            let id = expand::map(&mut b, MapOp::floor_div, &[Id(number.0), by]);
            let by = constant(&mut b, count.max(1));
            let id = expand::map(&mut b, MapOp::r#mod, &[id, by]);
            self.level().set_range(NodeId(id.0), Range::Int(0, i64::try_from(count).unwrap_or(i64::MAX).max(1) - 1));
            out.push(Scalar::Node(Kind::Int, self.tensor_id(id)));
        }
        out
    }

    /// `tile.program_id`, `tile.load` and `tile.store`; `None` for other functions.
    pub(super) fn tile_builtin(&mut self, function: Builtin, args: &[TExpr], span: Span) -> R<Value> {
        Ok(match (function, args) {
            (Builtin::tile_program_id, [axis]) => {
                let axis = self.int(axis, "the axis of a program")?;
                match self.tiles.as_ref().and_then(|p| p.ids.get(axis as usize)) {
                    Some(id) => Value::Scalar(id.clone()),
                    None => return Err(self.error(Code::E0999, span, "a program number outside a tile program")),
                }
            }
            (Builtin::tile_load, [x, index, shape, pad]) => self.tile_load(x, index, shape, pad, span)?,
            (Builtin::tile_store, [x, index, value]) => {
                self.tile_store(x, index, value, span)?;
                Value::None
            }
            _ => bug!("`{}` of {} arguments in a tile program", function.name(), args.len()),
        })
    }

    fn positions_of(&mut self, e: &TExpr) -> R<Vec<Scalar>> {
        let value = self.eval(e)?;
        let Value::Record(items) = &value else { return Err(self.broken(e.span, "a tuple of ints", &value)) };
        let mut out = vec![];
        for item in items.iter() {
            match item {
                Value::Scalar(Scalar::Late(..)) => {
                    out.push(Scalar::Known(Known::Int(self.int_value(item, "a tile's position", e.span)?)))
                }
                Value::Scalar(s) => out.push(s.clone()),
                other => return Err(self.broken(e.span, "an int", other)),
            }
        }
        Ok(out)
    }

    fn tile_load(&mut self, x: &TExpr, index: &TExpr, shape: &TExpr, pad: &TExpr, span: Span) -> R<Value> {
        let source = self.tensor_of(x)?;
        let at = self.positions_of(index)?;
        let mut tile = vec![];
        if let Value::Record(items) = self.eval(shape)? {
            for item in items.iter() {
                tile.push(self.int_value(item, "the size of a tile", span)? as u64);
            }
        }
        let ty = self.ty(source);
        let counts: Vec<u64> = ty.shape.iter().zip(&tile).map(|(n, t)| n.div_ceil((*t).max(1))).collect();
        let pad = match self.scalar(pad)? {
            Scalar::Known(v) => super::op::scalar(v),
            _ => return Err(self.error(Code::E0504, span, "`pad` must be known before the program runs")),
        };
        let checked = self.checked_positions(&at, &counts, &tile, &ty.shape, index.span)?;
        if let (TKind::Local(l), Some(program)) = (&x.kind, &mut self.tiles)
            && program.outputs.contains(l)
        {
            let Some(positions) = checked else {
                let message = "which tile of an output is read here depends on data";
                let d = self.error(Code::E0507, span, message);
                return Err(Box::new(d.note("another program may be writing it")));
            };
            let after = program.stores.len();
            program.loads.push(Load { output: *l, shape: tile.clone(), at: positions, after, span });
        }
        let padded = self.padded(source, &counts, &tile, pad, span);
        let starts: Vec<Id> = at.iter().zip(&tile).map(|(s, &t)| self.start(s, t, span)).collect();
        let operands: Vec<Id> = std::iter::once(self.id(padded)).chain(starts).collect();
        let id = self.prim(Prim::DynamicSlice { sizes: tile.clone() }, &operands, tile, ty.dtype, span);
        Ok(Value::Tensor(self.tensor_id(id)))
    }

    /// The first element of a tile along a dim.
    fn start(&mut self, position: &Scalar, size: u64, span: Span) -> Id {
        let id = Id(self.scalar_node(position, span).0);
        let mut b = self.adder("tile", span);
        let by = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(size as i64));
        expand::map(&mut b, MapOp::mul, &[id, by])
    }

    /// The tensor as whole tiles, in the graph that it belongs to: what sticks out is `pad`.
    fn padded(&mut self, x: Tensor, counts: &[u64], tile: &[u64], pad: prim::Scalar, span: Span) -> Tensor {
        let ty = self.ty(x);
        let shape: Vec<u64> = counts.iter().zip(tile).map(|(n, t)| n * t).collect();
        if shape == ty.shape {
            return x;
        }
        let (level, id) = match x {
            Tensor::Leaf(n) => (0, self.leaf_node(n)),
            Tensor::Node { level, id } => (level, id),
        };
        let (policy, origin) = (self.policy, self.origin(span));
        let graph = &mut self.levels[level as usize].graph;
        let mut push = |prim: Prim, operands: Vec<NodeId>, shape: &[u64]| {
            let ty = NodeType::new(shape.to_vec(), ty.dtype);
            // Views of one tensor with one tile are one node.
            let known = graph.ids().find(|&n| {
                let node = graph.node(n);
                node.prim == prim && node.operands == operands && node.ty == ty
            });
            let origin = origin.clone();
            known.unwrap_or_else(|| graph.push(Node { prim, operands, ty, results: vec![], origin, policy }))
        };
        let value = match (pad, ty.dtype.is_float()) {
            (prim::Scalar::I(n), true) => prim::Scalar::F(n as f64),
            (prim::Scalar::F(x), false) => prim::Scalar::I(x as i64),
            (value, _) => value,
        };
        let value = push(Prim::Full { value: expand::round_scalar(value, ty.dtype) }, vec![], &[]);
        let high = shape.iter().zip(&ty.shape).map(|(a, b)| a - b).collect();
        let id = push(Prim::Pad { low: vec![0; shape.len()], high }, vec![id, value], &shape);
        Tensor::Node { level, id }
    }

    fn tile_store(&mut self, x: &TExpr, index: &TExpr, value: &TExpr, span: Span) -> R<()> {
        let tile = self.tensor_of(value)?;
        let at = self.positions_of(index)?;
        let shape = self.ty(tile).shape;
        let of = self.tensor_of(x)?;
        let whole = self.ty(of).shape;
        let counts: Vec<u64> = whole.iter().zip(&shape).map(|(n, t)| n.div_ceil((*t).max(1))).collect();
        let TKind::Local(output) = x.kind else {
            return Err(self.error(Code::E0999, span, "a store into no parameter"));
        };
        let depth = self.levels.len() as u32 - 1;
        let (inside, total) = match &self.tiles {
            Some(p) => (p.level == depth, p.grid.iter().product::<u64>()),
            None => return Err(self.error(Code::E0999, span, "a store outside a tile program")),
        };
        if !inside {
            // A loop that stores is written out.
            return Err(self.error(Code::E0590, span, "a store in a loop of many turns"));
        }
        let Some(mut positions) = self.checked_positions(&at, &counts, &shape, &whole, index.span)? else {
            let d = self.error(Code::E0507, index.span, "which tile is written here depends on data");
            return Err(Box::new(
                d.note("two programs might write the same one")
                    .help("name the tile by the program's numbers and constants"),
            ));
        };
        if positions.len() == 1 && total > 1 {
            positions = vec![positions[0].clone(); total as usize];
        }
        if let Some(p) = &mut self.tiles {
            p.stores.push(Store { output, tile, shape, at: positions, span });
        }
        Ok(())
    }

    /// The positions of every program, each in range; `None` where they depend on data or there
    /// are too many to compute, so that only the run itself can check them.
    fn checked_positions(
        &mut self,
        at: &[Scalar],
        counts: &[u64],
        tile: &[u64],
        whole: &[u64],
        span: Span,
    ) -> R<Option<Vec<Vec<i64>>>> {
        let Some(p) = &self.tiles else { return Ok(None) };
        let (level, number, grid) = (p.level, p.number, p.grid.clone());
        let total: u64 = grid.iter().product();
        let fixed = at.iter().all(|s| matches!(s, Scalar::Known(_)));
        let programs = if fixed { 1 } else { total };
        if programs.saturating_mul(at.len() as u64) > CHECKS_MAX {
            return Ok(None);
        }
        let mut out = vec![];
        for n in 0..programs {
            let mut row = vec![];
            for s in at {
                let value = match s {
                    Scalar::Known(Known::Int(k)) => Some(*k),
                    Scalar::Known(Known::Bool(b)) => Some(*b as i64),
                    Scalar::Node(_, Tensor::Node { level: l, id }) if *l == level => {
                        let graph = &self.levels[level as usize].graph;
                        tile_grid::evaluate(graph, *id, &BTreeMap::from([(number, n as i64)]))
                    }
                    _ => None,
                };
                let Some(value) = value else { return Ok(None) };
                row.push(value);
            }
            for (d, (&k, &count)) in row.iter().zip(counts).enumerate() {
                if k < 0 || k as u64 >= count {
                    let who = coordinates(n, &grid);
                    let first = k.saturating_mul(tile[d] as i64);
                    let mut e = self.error(Code::E0508, span, format!("tile {k} of dim {d} lies outside the tensor"));
                    e.notes.push(format!("dim {d} has {} elements, which are {count} tiles of {}", whole[d], tile[d]));
                    e.witness = Some(if fixed {
                        format!("its first element would be number {first}")
                    } else {
                        format!("program {who} asks for it; its first element would be number {first}")
                    });
                    return Err(e);
                }
            }
            out.push(row);
        }
        Ok(Some(out))
    }

    /// Two programs that write one tile, or one that reads what another writes.
    fn races(&self, p: &Running) -> R<()> {
        for &output in &p.outputs {
            let mut writer: BTreeMap<&[i64], (usize, Span)> = BTreeMap::new();
            let mut shape: Option<&[u64]> = None;
            for store in p.stores.iter().filter(|s| s.output == output) {
                if shape.is_some_and(|s| s != store.shape) {
                    let d = self.error(Code::E0590, store.span, "stores into one output have tiles of different sizes");
                    return Err(Box::new(d.note("whether such tiles overlap is not worked out yet")));
                }
                shape = Some(&store.shape);
                for (n, at) in store.at.iter().enumerate() {
                    if let Some((other, first)) = writer.insert(at, (n, store.span))
                        && other != n
                    {
                        let (a, b) = (coordinates(other as u64, &p.grid), coordinates(n as u64, &p.grid));
                        let mut d = self.error(Code::E0507, store.span, format!("two programs write tile {at:?}"));
                        d.witness = Some(format!("programs {a} and {b}"));
                        let d = if first != store.span { d.with_label(first, "written here too") } else { *d };
                        return Err(Box::new(
                            d.note("which of them is last is not known")
                                .help("let every number of a program take part in the index of its store"),
                        ));
                    }
                }
            }
            for load in p.loads.iter().filter(|l| l.output == output) {
                let Some(shape) = shape else { continue };
                if shape != load.shape {
                    let d = self.error(
                        Code::E0590,
                        load.span,
                        "tiles that are read from an output and written to it differ in size",
                    );
                    return Err(Box::new(d.note("whether such tiles overlap is not worked out yet")));
                }
                let fixed = load.at.len() == 1;
                for n in 0..p.grid.iter().product::<u64>() as usize {
                    let at = &load.at[if fixed { 0 } else { n }];
                    let Some((other, written)) = writer.get(&at[..]) else { continue };
                    if *other != n {
                        let (a, b) = (coordinates(n as u64, &p.grid), coordinates(*other as u64, &p.grid));
                        let mut d = self.error(
                            Code::E0507,
                            load.span,
                            format!("tile {at:?} is read while another program writes it"),
                        );
                        d.witness = Some(format!("program {a} reads it, program {b} writes it"));
                        return Err(Box::new(d.with_label(*written, "written here")));
                    }
                    let earlier = p.stores[..load.after].iter().find(|s| s.output == output && s.at[n] == *at);
                    if let Some(Store { span: written, .. }) = earlier {
                        let d = self.error(Code::E0590, load.span, "a tile is read again after it was stored");
                        return Err(Box::new(
                            d.with_label(*written, "stored here").help("keep the tile in a variable"),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The values of some nodes of the body for all programs: `[programs, …]` each. What may fail in a program may
    /// fail here, though nothing reads it.
    fn for_all(&mut self, body: Level, number: NodeId, grid: &[u64], tiles: &[NodeId], span: Span) -> R<Vec<Id>> {
        let wanted = [tiles, &body.checks].concat();
        let mut made = self.each_program(body, number, grid, &wanted, span)?;
        let checks = made.split_off(tiles.len());
        self.level().checks.extend(checks.into_iter().map(|c| NodeId(c.0)));
        Ok(made)
    }

    fn each_program(&mut self, body: Level, number: NodeId, grid: &[u64], wanted: &[NodeId], span: Span) -> R<Vec<Id>> {
        let total: u64 = grid.iter().product();
        let imports: BTreeMap<NodeId, NodeId> = body.outer.iter().map(|(outer, inner)| (*inner, *outer)).collect();
        let mark = self.level().mark();
        if let Some(ids) = tile_grid::batch(self, &body.graph, number, grid, &imports, wanted, span) {
            return Ok(ids);
        }
        self.level().reset(&mark);
        // A loop over the programs.
        let mut b = self.adder("programs", span);
        let numbers = expand::iota(&mut b, &[total], 0);
        let mut graph = body.graph;
        graph.outputs = wanted.to_vec();
        graph.name = "program".into();
        let results: Vec<NodeType> = wanted
            .iter()
            .map(|&t| {
                let ty = graph.ty(t).clone();
                NodeType { shape: [&[total][..], &ty.shape].concat(), ..ty }
            })
            .collect();
        let operands: Vec<NodeId> =
            std::iter::once(NodeId(numbers.0)).chain(body.outer.iter().map(|(o, _)| *o)).collect();
        let (policy, origin) = (self.policy, self.origin(span));
        let outer: &mut Graph = &mut self.level().graph;
        outer.bodies.push(graph);
        let body = outer.bodies.len() as u32 - 1;
        let node = outer.push(Node {
            prim: Prim::Scan { body, carry: 0, sequences: 1, trips: total, reversed: false, until: false },
            operands,
            ty: results.first().cloned().unwrap_or(NodeType::new(vec![], DType::Bool)),
            results: results.clone(),
            origin,
            policy,
        });
        let mut out = vec![];
        for (index, ty) in results.into_iter().enumerate() {
            out.push(self.prim(Prim::Get { index }, &[Id(node.0)], ty.shape, ty.dtype, span));
        }
        Ok(out)
    }

    /// Writes the tiles of all programs, `[programs, tile…]`, into an output.
    fn place_tiles(&mut self, store: &Store, tiles: Id, total: u64) -> R<()> {
        let span = store.span;
        let Some(Value::Tensor(old)) = self.frame().get(&store.output).cloned() else {
            return Err(self.error(Code::E0999, span, "an output that is no tensor"));
        };
        let ty = self.ty(old);
        let counts: Vec<u64> = ty.shape.iter().zip(&store.shape).map(|(n, t)| n.div_ceil(*t)).collect();
        let all: u64 = counts.iter().product();
        let flat = |at: &[i64]| at.iter().zip(&counts).fold(0, |n, (&k, &c)| n * c as i64 + k);
        let numbers: Vec<i64> = store.at.iter().map(|at| flat(at)).collect();
        let rank = counts.len();
        let in_order = total == all && numbers.iter().enumerate().all(|(i, &n)| i as i64 == n);
        let tiled = if in_order {
            tiles
        } else if let Some(from) = inverse(&numbers, all) {
            // Every tile is written once: taken from the program that writes it.
            let index = self.literal(&from, span);
            let shape = [&[all][..], &store.shape].concat();
            self.prim(Prim::Take { axis: 0 }, &[tiles, index], shape, ty.dtype, span)
        } else {
            let padded = self.padded(old, &counts, &store.shape, prim::Scalar::I(0), span);
            let id = self.id(padded);
            let whole = self.as_tiles(id, &counts, &store.shape, span);
            let index = self.literal(&numbers, span);
            let shape = [&[all][..], &store.shape].concat();
            self.prim(Prim::Scatter { add: false }, &[whole, tiles, index], shape, ty.dtype, span)
        };
        // [tiles…, sizes…] back to rows of elements.
        let mut b = self.adder("tile.store", span);
        let split = expand::reshape(&mut b, tiled, &[&counts[..], &store.shape].concat());
        let perm: Vec<usize> = (0..rank).flat_map(|d| [d, rank + d]).collect();
        let mixed = expand::transpose(&mut b, split, &perm);
        let shape: Vec<u64> = counts.iter().zip(&store.shape).map(|(n, t)| n * t).collect();
        let mut id = expand::reshape(&mut b, mixed, &shape);
        for (d, &n) in ty.shape.iter().enumerate() {
            if n != shape[d] {
                id = expand::slice(&mut b, id, d, 0, n);
            }
        }
        let new = Value::Tensor(self.tensor_id(id));
        self.frame().insert(store.output, new);
        Ok(())
    }

    /// `[n0·t0, n1·t1, …]` as `[tiles, t0, t1, …]`.
    pub(super) fn as_tiles(&mut self, x: Id, counts: &[u64], tile: &[u64], span: Span) -> Id {
        let rank = counts.len();
        let split: Vec<u64> = counts.iter().zip(tile).flat_map(|(n, t)| [*n, *t]).collect();
        let perm: Vec<usize> = (0..rank).map(|d| 2 * d).chain((0..rank).map(|d| 2 * d + 1)).collect();
        let mut b = self.adder("tile", span);
        let x = expand::reshape(&mut b, x, &split);
        let x = expand::transpose(&mut b, x, &perm);
        expand::reshape(&mut b, x, &[&[counts.iter().product()][..], tile].concat())
    }

    /// A constant vector of ints.
    pub(super) fn literal(&mut self, values: &[i64], span: Span) -> Id {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.prim(Prim::Literal(bytes.into()), &[], vec![values.len() as u64], DType::I64, span)
    }
}

/// Which program writes each of `n` tiles, if each is written once.
fn inverse(numbers: &[i64], n: u64) -> Option<Vec<i64>> {
    if numbers.len() as u64 != n {
        return None;
    }
    let mut out = vec![-1; numbers.len()];
    for (program, &tile) in numbers.iter().enumerate() {
        *out.get_mut(tile as usize)? = program as i64;
    }
    out.iter().all(|p| *p >= 0).then_some(out)
}

/// `(1, 2)` for program 5 of a grid of 2 by 3.
fn coordinates(n: u64, grid: &[u64]) -> String {
    let mut out = vec![];
    let mut rest = n;
    for &g in grid.iter().rev() {
        out.push((rest % g.max(1)).to_string());
        rest /= g.max(1);
    }
    out.reverse();
    format!("({})", out.join(", "))
}

//! A primitive that this file alone defines goes the way of all others: it verifies, prints and reads back, runs, has
//! derivatives, goes over many values, over a mesh and into kernels. No other file knows it.

use tessera_autodiff::{batched, pullback, pushforward};
use tessera_base::Span;
use tessera_graph::fuse::{Limits, partition};
use tessera_ir::graph::{Node, NodeId, Origin};
use tessera_ir::group::GroupKind;
use tessera_ir::prim::columns::*;
use tessera_ir::prim::own;
use tessera_ir::{graph_text, interpret, verify};
use tessera_shard::propagate_sharding::derive;
use tessera_shard::spmd_partition::divide;
use tessera_tests::compare::{Bench, interpreted};
use tessera_tests::meshes::{layouts, of, on_mesh, play, with_inputs};
use tessera_tests::random_graph::{Builder, Case};

/// What each element of f32 is above the one before it along an axis; above 0 where there is none. The first `lead`
/// elements are only before others.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Differences {
    axis: usize,
    lead: u64,
}

impl Primitive for Differences {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        dtype_is(x[0], result)?;
        ensure(result.dtype == DType::F32, || format!("differences are f32, not {}", result.dtype))?;
        axis_in(self.axis, x[0].shape)?;
        let mut shape = x[0].shape.to_vec();
        shape[self.axis] = shape[self.axis].checked_sub(self.lead).ok_or("it leads by more than there is")?;
        ensure(self.lead <= 1, || format!("{} elements lead", self.lead))?;
        shape_is(&shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        put.size("lead", self.lead);
        "differences".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let read = || Ok(own(Differences { axis: op.index("axis")?, lead: op.index("lead")? as u64 }));
        (name == "differences").then(read)
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        let values: Vec<f32> = x[0].bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        let inner: usize = x[0].shape[self.axis + 1..].iter().product::<u64>() as usize;
        let (from, to) = (x[0].shape[self.axis] as usize, result.shape[self.axis] as usize);
        let mut out = vec![];
        for at in 0..elems(result.shape).unwrap_or(0) {
            let (row, column, outer) = (at / inner % to, at % inner, at / inner / to);
            let here = row + self.lead as usize;
            let value = |row: usize| values[(outer * from + row) * inner + column];
            out.extend((value(here) - if here > 0 { value(here - 1) } else { 0.0 }).to_le_bytes());
        }
        Ok(out)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let reach = Reach::Steps { start: self.lead as i64 - 1, step: 1, count: 2 };
        vec![at.pass_but(0, self.axis, Link::Reach(self.axis, reach))]
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.monoid == Monoid::Sum
    }

    fn of_box(&self, boxes: &Boxes) -> Option<Prim> {
        let (to, from) = (&boxes.result()[self.axis], &boxes.operand(0)[self.axis]);
        let lead = if to.is_empty() { 0 } else { to.start + self.lead - from.start };
        Some(own(Differences { axis: self.axis, lead }))
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let (axis, lead, size) = (self.axis, self.lead, at.shape(at.x[0])[self.axis]);
        if size == 0 {
            return Ok(vec![Some(at.c)]);
        }
        let dtype = at.dtype(at.c);
        let zero = at.zeros_of(&[], dtype);
        let around = |at: &mut At, part: Id, low: u64, high: u64| {
            let mut pads = [vec![0; at.shape(part).len()], vec![0; at.shape(part).len()]];
            (pads[0][axis], pads[1][axis]) = (low, high);
            let [low, high] = pads;
            at.like(at.x[0], Prim::Pad { low, high }, &[part, zero])
        };
        let here = around(at, at.c, lead, 0);
        let later = expand::slice(at.w, at.c, axis, 1 - lead, size - 1);
        let before = around(at, later, 0, 1);
        Ok(vec![Some(expand::map(at.w, MapOp::sub, &[here, before]))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(own(Differences { axis: self.axis + dims, lead: self.lead }))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let mut here = q.at.to_vec();
        here[self.axis] = here[self.axis].offset(self.lead as i64);
        let value = b.value(x, &here, q.guards, q.part)?;
        let mut start = vec![0; q.at.len()];
        start[self.axis] = 1 - self.lead as i64;
        let zero = |b: &mut Body, _: &[Guard]| Ok(b.constant(Scalar::F(0.0), DType::F32));
        let before = b.window((x, q.part), &start, q.at, q.guards, zero)?;
        Ok(b.push(ValueOp::Map { op: MapOp::sub, args: vec![value, before] }, q.dtype()))
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        let elems = at.elems();
        Cost { operations: elems, again: Again::Cheap(elems as f64 * 0.1), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: true, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "differences".into()
    }
}

/// `differences(exp(x)) * 2` along both axes, one after the other.
fn case() -> Case {
    let mut b = Builder::plain(1);
    let shape = [6, 8];
    let bytes = (0..48).flat_map(|i| (((i * 37 + 11) % 101) as f32 / 101.0).to_le_bytes()).collect();
    let x = b.input_of(&shape, DType::F32, bytes, false);
    let exp = b.push(Prim::Map(MapOp::exp), &[x], &shape, DType::F32);
    let down = b.push(own(Differences { axis: 0, lead: 0 }), &[exp], &shape, DType::F32);
    let two = b.push(Prim::Full { value: Scalar::F(2.0) }, &[], &shape, DType::F32);
    let twice = b.push(Prim::Map(MapOp::mul), &[down, two], &shape, DType::F32);
    let across = b.push(own(Differences { axis: 1, lead: 1 }), &[twice], &[6, 7], DType::F32);
    b.graph.outputs = vec![across];
    Case { graph: b.graph, inputs: b.data }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn run(g: &Graph, inputs: &[Vec<u8>]) -> Vec<Vec<f32>> {
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let out = interpret::run(g, &inputs).unwrap_or_else(|e| panic!("{e:?}"));
    out.iter().map(|b| floats(b)).collect()
}

#[test]
fn it_verifies_and_is_told_what_does_not_fit() {
    let mut g = case().graph;
    assert_eq!(verify::verify(&g), Vec::<String>::new());
    g.nodes[2].prim = own(Differences { axis: 2, lead: 0 });
    assert_eq!(verify::verify(&g), ["%2: axis 2 of a rank 2 array"]);
    assert_ne!(own(Differences { axis: 1, lead: 0 }), own(Differences { axis: 0, lead: 0 }));
    assert_eq!(own(Differences { axis: 1, lead: 0 }), own(Differences { axis: 1, lead: 0 }));
}

#[test]
fn it_prints_and_reads_back() {
    let text = case().graph.to_string();
    assert!(text.contains(r#""tessera.graph.differences"(%1) {axis=0, lead=0} : Tensor[6, 8, f32]"#), "{text}");
    let read = graph_text::parse_with(&text, &[Differences::read]).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!((read.to_string(), &read.nodes[2].prim), (text.clone(), &case().graph.nodes[2].prim));
    let refused = graph_text::parse(&text).map_err(|e| e.message);
    assert_eq!(refused.err().as_deref(), Some("`tessera.graph.differences`: no operation of this name exists"));
}

#[test]
fn it_runs() {
    let case = case();
    let x = floats(&case.inputs[0]);
    let exp = |i: usize, j: usize| f64::from(x[i * 8 + j]).exp();
    let down = |i: usize, j: usize| exp(i, j) - if i > 0 { exp(i - 1, j) } else { 0.0 };
    let got = &run(&case.graph, &case.inputs)[0];
    for (i, j) in (0..6).flat_map(|i| (0..7).map(move |j| (i, j))) {
        let want = 2.0 * (down(i, j + 1) - down(i, j));
        assert!((f64::from(got[i * 7 + j]) - want).abs() < 1e-5, "{i} {j}: {} {want}", got[i * 7 + j]);
    }
}

/// The directional derivative of the weighted sum of the outputs, by both modes and by differences.
#[test]
fn it_has_a_derivative() {
    let case = case();
    let (mut g, x, y) = (case.graph.clone(), NodeId(0), case.graph.outputs[0]);
    let push = |g: &mut Graph, like: NodeId, value: f64| {
        let ty = g.ty(like).clone();
        let prim = Prim::Full { value: Scalar::F(value) };
        let (origin, policy) = (Origin::default(), Policy::default());
        g.push(Node { prim, operands: vec![], ty, results: vec![], origin, policy })
    };
    let (seed, tangent) = (push(&mut g, y, 1.0), push(&mut g, x, 1.0));
    let back = pullback(&mut g, &[(y, seed)], &[x]).unwrap_or_else(|e| panic!("{e:?}"))[0];
    let ahead = pushforward(&mut g, &[y], &[(x, tangent)]).unwrap_or_else(|e| panic!("{e:?}"))[0];
    g.outputs = vec![back.expect("a cotangent"), ahead.expect("a tangent")];
    assert_eq!(verify::verify(&g), Vec::<String>::new());
    let made = run(&g, &case.inputs);
    let near = |step: f64| -> f64 {
        let moved = floats(&case.inputs[0]).iter().flat_map(|v| (v + step as f32).to_le_bytes()).collect();
        run(&case.graph, &[moved])[0].iter().map(|v| f64::from(*v)).sum()
    };
    let want = (near(1.0 / 64.0) - near(-1.0 / 64.0)) * 32.0;
    for (mode, values) in ["reverse", "forward"].iter().zip(&made) {
        let got: f64 = values.iter().map(|v| f64::from(*v)).sum();
        assert!((got - want).abs() < 1e-2 * want.abs().max(1.0), "{mode}: {got} and {want}");
    }
}

#[test]
fn it_goes_over_many_values() {
    let case = case();
    let bytes: Vec<u8> = (0..3 * 48).flat_map(|i| ((i * 53 % 97) as f32 / 97.0).to_le_bytes()).collect();
    let mut b = Builder::plain(2);
    let x = b.input_of(&[3, 6, 8], DType::F32, bytes.clone(), false);
    b.graph.outputs = batched(&mut b.graph, &case.graph, &[(x, true)], 3, Span::NONE);
    assert_eq!(verify::verify(&b.graph), Vec::<String>::new());
    let own = b.graph.nodes.iter().filter(|n| matches!(n.prim, Prim::Own(_))).count();
    assert_eq!(own, 2, "{}", b.graph);
    let one = |part: &[u8]| run(&case.graph, &[part.to_vec()]).remove(0);
    let want: Vec<f32> = bytes.chunks(48 * 4).flat_map(one).collect();
    assert_eq!(run(&b.graph, &[bytes])[0], want);
}

#[test]
fn devices_get_what_lies_beside_their_blocks() {
    let case = case();
    let want = interpreted(&case.graph, &case.inputs);
    let mut exchanged = 0;
    for sizes in [&[2, 3][..], &[4], &[5]] {
        let mesh = of(sizes);
        for layout in layouts(&mesh, 2) {
            let types = derive(&with_inputs(&case.graph, std::slice::from_ref(&layout)));
            let outputs = vec![types.ok().map(|mut found| found.remove(0))];
            let placed = on_mesh(&case, std::slice::from_ref(&layout), &outputs);
            let devices = divide(&tessera_graph::prune(&placed.graph), &mesh);
            for g in &devices.graphs {
                assert_eq!(verify::verify(g), Vec::<String>::new(), "{layout:?}\n{g}");
                exchanged += g.nodes.iter().filter(|n| matches!(n.prim, Prim::Exchange(_))).count();
            }
            assert_eq!(play(&placed.graph, &devices, &placed.inputs), want, "{layout:?}");
        }
    }
    assert!(exchanged > 0);
}

#[test]
fn it_becomes_part_of_a_kernel() {
    let case = case();
    let mut bench = Bench::new();
    let graph = bench.backend.optimise(&case.graph);
    let groups = partition(&graph, &Limits::default()).groups;
    assert!(groups.iter().all(|g| g.kind == GroupKind::Loop), "{groups:?}");
    bench.check_compiled(&case, &graph).unwrap_or_else(|e| panic!("{}", e.line()));
    let work = bench.backend.groups(&graph);
    assert!(work.iter().all(|p| p.schedule.is_some() && p.lowered.is_some()));
}

//! Loops copy nothing: a turn reads where the values lie and writes where they belong.

use std::sync::Arc;
use tessera_abi::plan::{BufRef, Given, Loop, Rows, Step, TurnInput, TurnOutput};
use tessera_tests::compare::Bench;

/// The plan of a graph whose only step is a loop; and the bytes of its arena.
fn looped(body: &str) -> (Arc<Loop>, u64) {
    let text = format!("\"tessera.graph\"() ({{\n{body}\n}})");
    let graph = tessera_ir::graph_text::parse(&text).unwrap_or_else(|e| panic!("{e:?}"));
    let bench = Bench::new();
    let graph = bench.backend.optimise(&graph);
    let plan = bench.backend.plan(&graph).unwrap_or_else(|e| panic!("{e:?}"));
    match &plan.steps[..] {
        [Step::Loop(l)] => (l.clone(), plan.arena_bytes),
        steps => panic!("{} steps", steps.len()),
    }
}

fn row(of: BufRef, first: u64, step: i64) -> TurnInput {
    TurnInput::Given(Given::Memory(Rows { of, first, step }))
}

/// Twenty layers of 8 numbers, through some of the weights of `%1`.
fn layers(weights: &str, scan: &str) -> String {
    format!(
        r#"%0 = "tessera.graph.input"() {{index=0}} : Tensor[1, 8, f32]
        %1 = "tessera.graph.input"() {{index=1}} : Tensor[24, 8, 8, f32]
        {weights}
        %3 = "tessera.graph.scan"(%0, %2) {{carry=1, sequences=1, trips=20{scan}}} ({{
            "tessera.graph"() {{name="body"}} ({{
                %0 = "tessera.graph.input"() {{index=0}} : Tensor[1, 8, f32]
                %1 = "tessera.graph.input"() {{index=1}} : Tensor[8, 8, f32]
                %2 = "tessera.graph.dot"(%0, %1) {{accum="f32"}} : Tensor[1, 8, f32]
                %3 = "tessera.graph.tanh"(%2) : Tensor[1, 8, f32]
                "tessera.graph.return"(%3, %0)
            }})
        }}) : Tensor[1, 8, f32], Tensor[20, 1, 8, f32]
        %4 = "tessera.graph.get"(%3) {{index=0}} : Tensor[1, 8, f32]
        %5 = "tessera.graph.get"(%3) {{index=1}} : Tensor[20, 1, 8, f32]
        "tessera.graph.return"(%4, %5)"#
    )
}

const PART: &str = r#"%2 = "tessera.graph.slice"(%1) {start=[3, 0, 0], step=[1, 1, 1]} : Tensor[20, 8, 8, f32]"#;
const BACK: &str = r#"%2 = "tessera.graph.slice"(%1) {start=[22, 0, 0], step=[-1, 1, 1]} : Tensor[20, 8, 8, f32]"#;

#[test]
fn rows_of_a_part_are_read_where_they_lie() {
    let (l, _) = looped(&layers(PART, ""));
    assert_eq!(l.inputs[1], row(BufRef::Input(1), 3 * 256, 256));
    let (l, _) = looped(&layers(BACK, ""));
    assert_eq!(l.inputs[1], row(BufRef::Input(1), 22 * 256, -256));
    let (l, _) = looped(&layers(PART, ", reversed=true"));
    assert_eq!(l.inputs[1], row(BufRef::Input(1), 22 * 256, -256));
}

#[test]
fn a_state_lies_in_the_rows_that_keep_it() {
    let (l, arena) = looped(&layers(PART, ""));
    let rows = Rows { of: BufRef::Output(1), first: 32, step: 32 };
    assert_eq!(l.outputs[0], TurnOutput::Rows { rows, last: Some(BufRef::Output(0)) });
    assert!(l.body.steps.iter().all(|s| matches!(s, Step::Kernel { .. })), "a turn copies");
    assert_eq!((l.first.len(), l.last.len(), arena), (1, 0, 0));
}

#[test]
fn a_sum_stays_in_one_place_and_a_product_in_two() {
    let body = |op: &str| {
        format!(
            r#"%0 = "tessera.graph.input"() {{index=0}} : Tensor[8, 8, f32]
            %1 = "tessera.graph.input"() {{index=1}} : Tensor[20, 8, 8, f32]
            %2 = "tessera.graph.scan"(%0, %1) {{carry=1, sequences=1, trips=20}} ({{
                "tessera.graph"() {{name="body"}} ({{
                    %0 = "tessera.graph.input"() {{index=0}} : Tensor[8, 8, f32]
                    %1 = "tessera.graph.input"() {{index=1}} : Tensor[8, 8, f32]
                    %2 = {op} : Tensor[8, 8, f32]
                    "tessera.graph.return"(%2)
                }})
            }}) : Tensor[8, 8, f32]
            %3 = "tessera.graph.get"(%2) {{index=0}} : Tensor[8, 8, f32]
            "tessera.graph.return"(%3)"#
        )
    };
    let (l, arena) = looped(&body(r#""tessera.graph.add"(%0, %1)"#));
    assert_eq!((l.outputs[0], arena), (TurnOutput::Whole(BufRef::Output(0)), 0));
    let (l, arena) = looped(&body(r#""tessera.graph.dot"(%0, %1) {accum="f32"}"#));
    assert_eq!((l.outputs[0], arena), (TurnOutput::Alternate([BufRef::Output(0), BufRef::Arena(0)]), 256));
}

//! Lowering of small typed programs, written out.

use super::*;
use tessera_core::build::*;
use tessera_core::ir::*;
use tessera_ir::host::{HExprKind, HStmt};

#[test]
fn a_training_step_is_one_region_with_one_result() {
    let lowered = lower(&training(), Options::default());
    // The two zeros are one region; the step is another, which gives the new w only.
    assert_eq!(lowered.regions.len(), 2, "{:#?}", lowered.host.fns);
    assert_eq!(lowered.host.regions[0].results.len(), 2);
    assert_eq!(lowered.host.regions[1].results.len(), 1);
    assert_eq!(lowered.regions[1].params.len(), 3);
    assert!(lowered.host.globals.is_empty());
    let body = &lowered.host.fns[0].body;
    let Some(HStmt::ForRange { body, .. }) = body.iter().find(|s| matches!(s, HStmt::ForRange { .. })) else {
        panic!("{body:#?}")
    };
    // lr changes before the region runs, which still takes the old value; w moves in.
    assert!(
        matches!(&body[..], [HStmt::SetLocal(..), HStmt::SetLocal(..), HStmt::SetLocal(_, call)]
        if matches!(&call.kind, HExprKind::Region { args, .. }
            if args.iter().filter(|a| matches!(a.kind, HExprKind::Take(_))).count() == 1)),
        "{body:#?}"
    );
}

#[test]
fn a_slice_of_a_host_variable_is_no_region() {
    let t = || tensor(&[4, 4]);
    let row = e(
        TKind::TensorIndex {
            checks: vec![],
            base: Box::new(global(0, t())),
            index: vec![IndexPart::Int(e(TKind::Int(1), Ty::int())), IndexPart::Whole(1)],
        },
        tensor(&[4]),
    );
    let p = program(vec![var("x", t())], vec![], vec![print(vec![row])]);
    assert!(lower(&p, Options::default()).regions.is_empty());
}

"""Writes compiler/onnx/src/standard.txt: what the ONNX standard says about the operators that are translated.

    pip install onnx numpy
    python3 tests/data/onnx_standard.py > compiler/onnx/src/standard.txt

Facts only, from `onnx.defs.get_all_schemas_with_history()`. The text says how a line reads. Which values a text
may have stands in the prose of the standard (Operators.md, Changelog.md) and was copied to `TEXTS` by hand; `if since`
is the version that added a value.
"""

import re
from pathlib import Path

import numpy
from onnx import defs, helper

ROOT = Path(__file__).resolve().parents[2]
DTYPES = {
    "bool": "bool", "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float": "f32", "double": "f64", "complex64": "c64",
    "float8e4m3fn": "fp8_e4m3", "float8e5m2": "fp8_e5m2",
}  # fmt: skip
PLACES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]
ACTIVATIONS = [
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus",
]  # fmt: skip


def texts(op, attribute, since):
    """The values that a text, or each of several, may have; none where any is right."""
    since_is = lambda version, *values: list(values) if since >= version else []
    known = {
        "auto_pad": ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"],
        "direction": ["forward", "reverse", "bidirectional"],
        "activations": ACTIVATIONS,
        "approximate": ["none", "tanh"],
        "round_mode": ["up", "down", "nearest"],
        "reduction": ["none", "add", "mul"] + since_is(18, "max", "min"),
        "nearest_mode": ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
        "keep_aspect_ratio_policy": ["stretch", "not_larger", "not_smaller"],
        "coordinate_transformation_mode": PLACES
        + (["tf_half_pixel_for_nn"] if since == 11 else [])
        + since_is(19, "half_pixel_symmetric"),
        "Pad.mode": ["constant", "reflect", "edge"] + since_is(19, "wrap"),
        "Resize.mode": ["nearest", "linear"] + since_is(11, "cubic"),
        "Upsample.mode": ["nearest", "linear"] + (["bilinear"] if since == 1 else []),
        "DepthToSpace.mode": ["DCR", "CRD"],
        "SpaceToDepth.mode": ["DCR", "CRD"],
    }
    return known.get(attribute) or known.get(f"{op}.{attribute}", [])


def shown(value):
    if isinstance(value, bytes):
        # A slip of the pen in version 1 of `GRU`.
        return value.decode().replace("foward", "forward")
    if isinstance(value, float):
        return str(numpy.float32(value))
    if isinstance(value, (list, tuple)):
        return ",".join(shown(v) for v in value)
    return str(value)


def attribute(schema, name):
    a = schema.attributes[name]
    kind = a.type.name.lower().replace("string", "text")
    default = "" if not a.default_value.type else "=" + shown(helper.get_attribute_value(a.default_value))
    values = texts(schema.name, name, schema.since_version) if kind in ("text", "texts") else []
    return f"{name}:{kind}{'!' if a.required else ''}{default}" + ("{" + ",".join(values) + "}" if values else "")


def dtype(text):
    """The element type in `tensor(float)`; sequences, optionals and others have none."""
    inner = re.fullmatch(r"tensor\((\w+)\)", text)
    return DTYPES.get(inner[1]) if inner else None


def places(formal):
    marks = {"Single": "", "Optional": "?", "Variadic": "*"}
    return " ".join((dtype(f.type_str) or f.type_str) + marks[f.option.name] for f in formal)


class Sets:
    """Names for sets of dtypes: most operators have one of a few."""

    def __init__(self):
        self.names = {}

    def name(self, dtypes):
        return self.names.setdefault(dtypes, f"set{len(self.names) + 1}")


def types(schema, sets):
    out = []
    for c in schema.type_constraints:
        have = {dtype(t) for t in c.allowed_type_strs}
        out.append(f"{c.type_param_str}={sets.name(','.join(d for d in DTYPES.values() if d in have))}")
    return " ".join(out)


def operators():
    listed = (ROOT / "docs/onnx.md").read_text().split("the standard operators")[1].split("in all versions")[0]
    return set(re.findall(r"`(\w+)`", listed))


def main():
    wanted = operators()
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    sets, lines = Sets(), []
    for s in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        if s.name in wanted:
            attributes = " ".join(attribute(s, name) for name in sorted(s.attributes))
            parts = [f"{s.name} {s.since_version}", attributes, places(s.inputs), places(s.outputs), types(s, sets)]
            lines.append(" | ".join(parts).replace("  ", " ").rstrip())
    print("# What the ONNX standard says about operators; made by tests/data/onnx_standard.py from its published schemas.")
    print("# operator since | name:kind!=default{values} ... | inputs | outputs | type=dtypes ...")
    print("# `!`: required; `?`: may be left out; `*`: any number; dtypes are those that have a counterpart here.")
    print("through", max(s.since_version for s in schemas))
    for dtypes, name in sets.names.items():
        print(name, dtypes)
    print("\n".join(lines))


main()

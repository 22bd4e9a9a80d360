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
        "NegativeLogLikelihoodLoss.reduction": ["none", "mean", "sum"],
        "SoftmaxCrossEntropyLoss.reduction": ["none", "mean", "sum"],
        "BitShift.direction": ["LEFT", "RIGHT"],
        "GridSample.padding_mode": ["zeros", "border", "reflection"],
        "GridSample.mode": ["linear", "nearest", "cubic"] if since >= 20 else ["bilinear", "nearest", "bicubic"],
        "com.microsoft.FusedConv.activation": ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"],
        "nearest_mode": ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
        "keep_aspect_ratio_policy": ["stretch", "not_larger", "not_smaller"],
        "coordinate_transformation_mode": PLACES
        + (["tf_half_pixel_for_nn"] if since == 11 else [])
        + since_is(19, "half_pixel_symmetric"),
        "Pad.mode": ["constant", "reflect", "edge"] + since_is(19, "wrap"),
        "Resize.mode": ["nearest", "linear"] + since_is(11, "cubic"),
        "RoiAlign.mode": ["avg", "max"],
        "RoiAlign.coordinate_transformation_mode": ["half_pixel", "output_half_pixel"],
        "LinearAttention.update_rule": ["linear", "gated", "delta", "gated_delta"],
        "CausalConvWithState.activation": ["silu", "swish", "none"],
        "TensorScatter.mode": ["linear", "circular"],
        "Upsample.mode": ["nearest", "linear"] + (["bilinear"] if since == 1 else []),
        "DepthToSpace.mode": ["DCR", "CRD"],
        "SpaceToDepth.mode": ["DCR", "CRD"],
    }
    return known.get(f"{op}.{attribute}") or known.get(attribute, [])


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


FLOATS, NARROW, BYTES = "f16,bf16,f32", "f16,f32", "u8,i8"
WINDOWS = "auto_pad:text=NOTSET{NOTSET,SAME_UPPER,SAME_LOWER,VALID} dilations:ints group:int=1 kernel_shape:ints pads:ints strides:ints"
ACTIVATED = "activation:text{Relu,Tanh,Sigmoid,LeakyRelu,Clip,HardSigmoid} activation_params:floats"
HEADS = "mask_filter_value:float=-10000.0 num_heads:int! {more}scale:float unidirectional:int=0"
# Operators of onnxruntime, from its documentation (docs/ContribOperators.md): name, attributes, arguments, results, types.
CONTRIB = [
    ("SimplifiedLayerNormalization", "axis:int=-1 epsilon:float=1e-05 stash_type:int=1", "T V", "V U?", dict(T="f16,bf16,f32,f64", U="f32,f64", V="f16,bf16,f32,f64")),
    ("com.microsoft.Attention", HEADS.format(more="do_rotary:int=0 past_present_share_buffer:int qkv_hidden_sizes:ints rotary_embedding_dim:int "), "T T T? M? T? T? M?", "T T?", dict(T=FLOATS, M="i32")),
    ("com.microsoft.BiasAdd", "", "T T T", "T", dict(T=NARROW)),
    ("com.microsoft.BiasGelu", "", "T T", "T", dict(T="f16,bf16,f32,f64")),
    ("com.microsoft.DequantizeLinear", "axis:int=1", "T1 T2 T1?", "T2", dict(T1="u8,i8,i16,i32", T2=NARROW)),
    ("com.microsoft.DynamicQuantizeLSTM", "activation_alpha:floats activation_beta:floats activations:texts{" + ",".join(ACTIVATIONS) + "} clip:float direction:text=forward{forward,reverse,bidirectional} hidden_size:int input_forget:int=0", "T T2 T2 T? T1? T? T? T? T T2 T T2", "T? T? T?", dict(T="f32", T1="i32", T2=BYTES)),
    ("com.microsoft.DynamicQuantizeMatMul", "", "T1 T2 T1 T2? T1?", "T1", dict(T1="f32", T2=BYTES)),
    ("com.microsoft.EmbedLayerNormalization", "epsilon:float=1e-12 mask_index_type:int=0", "T1 T1? T T T? T T T1? T1?", "T T1? T?", dict(T1="i32", T=NARROW)),
    ("com.microsoft.FastGelu", "", "T T?", "T", dict(T="f16,bf16,f32,f64")),
    ("com.microsoft.FusedConv", f"{ACTIVATED} {WINDOWS}", "T T T? T?", "T", dict(T="f16,f32,f64")),
    ("com.microsoft.FusedMatMul", "alpha:float=1.0 transA:int=0 transB:int=0 transBatchA:int=0 transBatchB:int=0", "T T", "T", dict(T="f16,bf16,f32,f64")),
    ("com.microsoft.Gelu", "", "T", "T", dict(T="f16,bf16,f32,f64")),
    ("com.microsoft.GroupQueryAttention", "do_rotary:int=0 k_quant_type:text=NONE kv_cache_bit_width:int kv_num_heads:int! local_window_size:int=-1 num_heads:int! qk_output:int=0 rotary_interleaved:int=0 scale:float smooth_softmax:int=-1 softcap:float=0.0 v_quant_type:text=NONE", "T T? T? T? T? M M T? T? I? T? T?", "T T? T? T?", dict(T=FLOATS, M="i32", I="i64")),
    ("com.microsoft.MatMulIntegerToFloat", "", "T1 T2 T3 T3 T1? T2? T3?", "T3", dict(T1=BYTES, T2=BYTES, T3="f32")),
    ("com.microsoft.MatMulNBits", "K:int! N:int! accuracy_level:int=0 bits:int=4 block_size:int! weight_prepacked:int=0", "T1 T2 T1 T3? T4? T1?", "T1", dict(T1=FLOATS, T2="u8", T3="u8,f16,bf16,f32", T4="i32")),
    ("com.microsoft.MultiHeadAttention", HEADS.format(more=""), "T T? T? T? M? T? T? T? M? M?", "T T? T? T?", dict(T=FLOATS, M="i32")),
    ("com.microsoft.QLinearAdd", "", "T f32 T? T f32 T? f32 T?", "T", dict(T=BYTES)),
    ("com.microsoft.QLinearConcat", "axis:int!", "TF T8 TV*", "T8", dict(TF="f32", T8=BYTES, TV="u8,i8,f32")),
    ("com.microsoft.QLinearGlobalAveragePool", "channels_last:int=0", "T f32 T f32 T", "T", dict(T=BYTES)),
    ("com.microsoft.QLinearLeakyRelu", "alpha:float=0.01", "T f32 T? f32 T?", "T", dict(T=BYTES)),
    ("com.microsoft.QLinearMul", "", "T f32 T? T f32 T? f32 T?", "T", dict(T=BYTES)),
    ("com.microsoft.QLinearSigmoid", "", "T f32 T? f32 T?", "T", dict(T=BYTES)),
    ("com.microsoft.QLinearSoftmax", "axis:int=-1 opset:int!", "T f32 T? f32 T", "T", dict(T=BYTES)),
    ("com.microsoft.QuantizeLinear", "axis:int=1", "T1 T1 T2?", "T2", dict(T1=NARROW, T2="u8,i8,i16")),
    ("com.microsoft.QuickGelu", "alpha:float=1.702", "T", "T", dict(T="f16,bf16,f32,f64")),
    ("com.microsoft.RotaryEmbedding", "interleaved:int=0 is_packed_batching:int=0 num_heads:int=0 rotary_embedding_dim:int=0 scale:float=1.0", "T M T T", "T", dict(T=FLOATS, M="i64")),
    ("com.microsoft.SkipLayerNormalization", "epsilon:float=1e-12", "T T T T? T?", "T U? U? T?", dict(T=FLOATS, U="f32")),
    ("com.microsoft.SkipSimplifiedLayerNormalization", "epsilon:float=1e-12", "T T T T?", "T U? U? T?", dict(T=FLOATS, U="f32")),
]  # fmt: skip


def operators():
    listed = (ROOT / "docs/onnx.md").read_text().split("the standard operators")[1].split("in all versions")[0]
    return set(re.findall(r"`([\w.]+)`", listed))


def main():
    wanted = operators()
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == ""]
    sets, lines = Sets(), []
    for s in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        if s.name in wanted:
            attributes = " ".join(attribute(s, name) for name in sorted(s.attributes))
            parts = [f"{s.name} {s.since_version}", attributes, places(s.inputs), places(s.outputs), types(s, sets)]
            lines.append(" | ".join(parts).replace("  ", " ").rstrip())
    for name, attributes, arguments, results, own in CONTRIB:
        kinds = " ".join(f"{t}={sets.name(dtypes)}" for t, dtypes in own.items())
        lines.append(" | ".join([f"{name} 1", attributes, arguments, results, kinds]).replace("  ", " ").rstrip())
    print("# What the ONNX standard says about operators; made by tests/data/onnx_standard.py from its published schemas.")
    print("# operator since | name:kind!=default{values} ... | inputs | outputs | type=dtypes ...")
    print("# `!`: required; `?`: may be left out; `*`: any number; dtypes are those that have a counterpart here.")
    print("through", max(s.since_version for s in schemas))
    for dtypes, name in sets.names.items():
        print(name, dtypes)
    print("\n".join(lines))


main()

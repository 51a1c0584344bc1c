"""A model folder → encoder.onnx and decoder.onnx, which ONNX Runtime runs, float32, sentences in batches.

    encoder: ids (B S), mask (B S; true where a token is, false where padding)
             → dec.N.cross.K, dec.N.cross.V (B H S K): what every step will ask
    decoder: ids (B 1; the latest token), mask, dec.N.cross.K and .V, kept.dec.N.self.K and .V (B H T K; T 0 at first)
             → logits (B V), dec.N.self.K and .V (B H T+1 K): the next step's kept ones

The graphs are written from the table of parameters, as `glass/` computes, and their values have its names: every head's
scores are `enc.0.self.scores`, with the heads as an axis.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, ValueInfoProto

from vidrio.errors import ModelError
from vidrio.fast.export import obstacles, position_table
from vidrio.interop.names import side_by_side
from vidrio.interop.onnx_graph import Graph, array, in_file
from vidrio.interop.to_huggingface import fast_tokenizer, marian_tokenizer, object_bytes, search_of
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import TENSORS, TOKENIZERS, read_config, read_parameters
from vidrio.model.parameters import output_is_tied, parameter_specs, source_table, target_table
from vidrio.text.tokens.tokenizer import read_tokenizers

SubLayer = Callable[[Graph, str, str], str]  # the graph, what goes in, its name → what comes out
SEEN = "mask of heads"


def export_onnx(folder: Path, to: Path) -> dict[str, bytes]:
    """Write the graphs and their numbers into the folder `to`; the files beside them."""
    config, about = read_config(folder)
    if problems := obstacles(config):
        raise ModelError(f"{folder} cannot be exported for ONNX", found="; ".join(problems))
    source, target = read_tokenizers(folder, config)
    from safetensors.numpy import save

    write_atomically(to / TENSORS, save(arrays(config, read_parameters(folder))))
    parameters = in_file(to / TENSORS)
    write_encoder(Graph(config, parameters), to / "encoder.onnx")
    write_decoder(Graph(config, parameters), to / "decoder.onnx")
    if source.sentence_pieces:
        files = marian_tokenizer(config, about, source, target)
    else:
        sides = [source] if source is target else [source, target]
        tokenizers = zip(TOKENIZERS, sides, strict=False)
        files = {name: fast_tokenizer(config, side)["tokenizer.json"] for name, side in tokenizers}
    return {**files, "generation_config.json": object_bytes(search_of(config, target))}


def arrays(config: ModelConfig, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The parameters with the heads side by side, and the tables of positions, whether they are learned or not."""
    specs = parameter_specs(config)
    flat = {name: side_by_side(parameters[name], spec) for name, spec in specs.items()}
    tables = {name: position_table(config, parameters, name) for name in ("src.pos", "tgt.pos")}
    return {name: np.ascontiguousarray(value, np.float32) for name, value in {**flat, **tables}.items()}


# --- the two graphs ---------------------------------------------------------------------------------------------------


def write_encoder(graph: Graph, path: Path) -> None:
    length = graph.step("Shape", ["ids"], "src.length", start=1)
    rows = graph.step("Slice", ["src.pos", graph.sizes(0), length], "src.positions")
    x = embed(graph, "src", source_table(graph.config), rows)
    x = layers(graph, x, "enc", {"self": to_itself, "ffn": feed_forward})
    for n in range(graph.config.n_decoder_layers):
        for letter in "KV":
            heads(graph, x, f"dec.{n}.cross", letter)
    graph.write(path, [array("ids", "B", "S", kind=TensorProto.INT64), mask()], kept(graph, "cross", "S"))


def write_decoder(graph: Graph, path: Path) -> None:
    length = graph.step("Shape", ["kept.dec.0.self.K"], "tgt.length", start=2, end=3)
    row = graph.step("Gather", ["tgt.pos", length], "tgt.positions")
    x = embed(graph, "tgt", target_table(graph.config), row)
    x = layers(graph, x, "dec", {"self": to_those_before, "cross": across, "ffn": feed_forward})
    x = graph.step("Reshape", [x, graph.sizes(-1, graph.config.d_model)], "dec.out")
    table = target_table(graph.config) if output_is_tied(graph.config) else "out.W"
    bias = ["out.b"] if graph.config.output_bias else []
    graph.step("Gemm", [x, table, *bias], "logits", transB=int(output_is_tied(graph.config)))
    inputs = [array("ids", "B", 1, kind=TensorProto.INT64), mask(), *kept(graph, "cross", "S")]
    outputs = [array("logits", "B", graph.config.target_vocabulary), *kept(graph, "self", "T + 1")]
    graph.write(path, [*inputs, *kept(graph, "self", "T", "kept.")], outputs)


def mask() -> ValueInfoProto:
    return array("mask", "B", "S", kind=TensorProto.BOOL)


def kept(graph: Graph, part: str, length: str, before: str = "") -> list[ValueInfoProto]:
    """Keys and values of all layers."""
    return [
        array(f"{before}dec.{n}.{part}.{letter}", "B", graph.config.n_heads, length, graph.config.d_head)
        for n in range(graph.config.n_decoder_layers)
        for letter in "KV"
    ]


# --- their parts; glass/paper/transformer.py and attention.py say what they are ---------------------------------------


def embed(graph: Graph, side: str, table: str, positions: str) -> str:
    x = graph.step("Gather", [table, "ids"], f"{side}.embedding")
    if graph.config.scale_embeddings:
        x = graph.step("Mul", [x, graph.number(math.sqrt(graph.config.d_model))], f"{side}.scaled")
    return graph.step("Add", [x, positions], {"src": "enc.in", "tgt": "dec.in"}[side])


def layers(graph: Graph, x: str, side: str, parts: Mapping[str, SubLayer]) -> str:
    """The layers of a side: each sub-layer with its residual and its norm."""
    graph.step("Unsqueeze", ["mask", graph.sizes(1, 2)], SEEN)
    before = graph.config.norm == "pre"
    for n in range(graph.config.n_encoder_layers if side == "enc" else graph.config.n_decoder_layers):
        for part, sub_layer in parts.items():
            name = f"{side}.{n}.{part}"
            found = sub_layer(graph, norm(graph, x, f"{name}.norm") if before else x, name)
            x = graph.step("Add", [x, found], f"{name}.sum")
            x = x if before else norm(graph, x, f"{name}.norm")
    return norm(graph, x, f"{side}.norm") if before else x


def norm(graph: Graph, x: str, name: str) -> str:
    inputs = [x, f"{name}.gain", f"{name}.bias"]
    return graph.step("LayerNormalization", inputs, f"{name}.out", epsilon=graph.config.norm_epsilon)


def linear(graph: Graph, x: str, matrix: str, bias: str, result: str) -> str:
    """x W + b, or x W where there is no b."""
    if bias not in graph.parameters:
        return graph.step("MatMul", [x, matrix], result)
    return graph.step("Add", [graph.step("MatMul", [x, matrix], f"{result}.product"), bias], result)


def feed_forward(graph: Graph, x: str, name: str) -> str:
    hidden = linear(graph, x, f"{name}.W1", f"{name}.b1", f"{name}.hidden")
    if graph.config.activation == "swish":
        gate = graph.step("Sigmoid", [hidden], f"{name}.gate")
        active = graph.step("Mul", [hidden, gate], f"{name}.active")
    else:
        active = graph.step({"relu": "Relu", "gelu": "Gelu"}[graph.config.activation], [hidden], f"{name}.active")
    return linear(graph, active, f"{name}.W2", f"{name}.b2", f"{name}.out")


def heads(graph: Graph, x: str, name: str, letter: str, result: str = "") -> str:
    """Queries, keys or values, B L D → B H L K."""
    rows = linear(graph, x, f"{name}.W{letter}", f"{name}.b{letter}", f"{name}.{letter}.rows")
    apart = graph.step(
        "Reshape", [rows, graph.sizes(0, 0, graph.config.n_heads, graph.config.d_head)], f"{name}.{letter}.apart"
    )
    return graph.step("Transpose", [apart], result or f"{name}.{letter}", perm=[0, 2, 1, 3])


def to_itself(graph: Graph, x: str, name: str) -> str:
    """In the encoder."""
    Q, K, V = (heads(graph, x, name, letter) for letter in "QKV")
    return attend(graph, name, Q, K, V, SEEN)


def to_those_before(graph: Graph, x: str, name: str) -> str:
    """In the decoder: the latest token asks itself and those before, so nothing is masked."""
    Q = heads(graph, x, name, "Q")
    for letter in "KV":
        latest = heads(graph, x, name, letter, f"{name}.{letter}.latest")
        graph.step("Concat", [f"kept.{name}.{letter}", latest], f"{name}.{letter}", axis=2)
    return attend(graph, name, Q, f"{name}.K", f"{name}.V")


def across(graph: Graph, x: str, name: str) -> str:
    """The source's keys and values were made by the encoder's graph."""
    return attend(graph, name, heads(graph, x, name, "Q"), f"{name}.K", f"{name}.V", SEEN)


def attend(graph: Graph, name: str, Q: str, K: str, V: str, seen: str = "") -> str:
    """Eq. 1 for all heads, and W^O."""
    turned = graph.step("Transpose", [K], f"{name}.K.turned", perm=[0, 1, 3, 2])
    scores = graph.step("MatMul", [Q, turned], f"{name}.scores")
    scaled = graph.step("Div", [scores, graph.number(math.sqrt(graph.config.d_head))], f"{name}.scaled")
    if seen:
        scaled = graph.step("Where", [seen, scaled, graph.number(-math.inf)], f"{name}.masked")
    weights = graph.step("Softmax", [scaled], f"{name}.weights", axis=-1)
    mixed = graph.step("MatMul", [weights, V], f"{name}.head")
    together = graph.step("Transpose", [mixed], f"{name}.together", perm=[0, 2, 1, 3])
    concat = graph.step("Reshape", [together, graph.sizes(0, 0, -1)], f"{name}.concat")
    return linear(graph, concat, f"{name}.WO", f"{name}.bO", f"{name}.out")

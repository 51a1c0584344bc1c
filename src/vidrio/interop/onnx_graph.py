"""A graph in ONNX's form, written step by step. Its parameters stay in a safetensors file beside it.

An initializer tells where its numbers stand in that file, so that encoder and decoder share one, and neither is too
large for a protocol buffer (2 GB).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper, save

from vidrio.model.config import ModelConfig
from vidrio.model.header import read_header

OPERATIONS, FORMAT = 20, 9  # versions: the first with GELU, and the one that goes with it


class Graph:
    """The steps so far. Each gives back the name of its result."""

    def __init__(self, config: ModelConfig, parameters: Mapping[str, TensorProto]) -> None:
        self.config, self.parameters = config, parameters
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, TensorProto] = {}

    def step(self, operator: str, inputs: Sequence[str], result: str, **attributes: int | float | list[int]) -> str:
        node = helper.make_node(operator, inputs, [result], name=result)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return result

    def number(self, value: float) -> str:
        """A float32 as an input."""
        return self._constant(f"number {value}", np.float32(value))

    def sizes(self, *values: int) -> str:
        """Whole numbers as an input: a shape, axes, places."""
        return self._constant(f"sizes {values}", np.array(values, np.int64))

    def _constant(self, name: str, value: Any) -> str:
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def write(self, path: Path, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]) -> None:
        """The file, held to ONNX's own rules."""
        known = {**self.parameters, **self.constants}
        used = dict.fromkeys(name for node in self.nodes for name in node.input if name in known)
        initializers = [known[name] for name in used]
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, initializers)
        model: ModelProto = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPERATIONS)], ir_version=FORMAT, producer_name="vidrio"
        )
        save(model, path)
        checker.check_model(path, full_check=True)


def array(name: str, *axes: int | str, kind: int = TensorProto.FLOAT) -> ValueInfoProto:
    """An input or output of a graph: each axis has a size, or a letter where the size is the caller's."""
    return helper.make_tensor_value_info(name, kind, axes)


def in_file(path: Path) -> dict[str, TensorProto]:
    """The arrays of a safetensors file in float32, each as a place in it."""
    with path.open("rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
    tensors = {}
    for name, stored in read_header(path).items():
        first, last = stored.data_offsets
        tensor = TensorProto(
            name=name, data_type=TensorProto.FLOAT, dims=stored.shape, data_location=TensorProto.EXTERNAL
        )
        for key, value in (("location", path.name), ("offset", begin + first), ("length", last - first)):
            tensor.external_data.add(key=key, value=str(value))
        tensors[name] = tensor
    return tensors

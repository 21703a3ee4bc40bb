"""What XLA says of the programs it compiled: multiply-adds and memory."""

import math
import os
import re
from pathlib import Path

INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = \w+\[([\d,]*)\]")
DOT = re.compile(
    r" dot\((?:\w+\[\S+ )?%?([\w.-]+),.*lhs_contracting_dims=\{([\d,]*)\}"
)
CONVOLUTION = re.compile(
    r" convolution\((?:\w+\[\S+ )?%?[\w.-]+, (?:\w+\[\S+ )?%?([\w.-]+)\),"
    r".*dim_labels=\w+_(\w+)->"
)
LOOP = re.compile(r" while\(")
BYTES = re.compile(r"Total bytes used: (\d+)")
SCRATCH = re.compile(r"^allocation \d+: size (\d+), preallocated-temp", re.M)


class CompiledPrograms:
    """Reads what XLA writes about each program that it compiles.

    Make one before TensorFlow starts: XLA reads its flags once.

    Args:
        folder: an empty folder for what XLA writes.
    """

    def __init__(self, folder):
        self._folder = Path(folder)
        flags = [
            os.environ.get("XLA_FLAGS", ""),
            f"--xla_dump_to={self._folder}",
            "--xla_dump_hlo_as_text",
        ]
        os.environ["XLA_FLAGS"] = " ".join(flags).strip()

    def take(self):
        """Describes what was compiled since the last call.

        Returns:
            Dict `{"programs", "multiply_adds", "bytes", "scratch_bytes"}`: how
            many there are; the multiply-adds of their products and
            convolutions, or `None` if some may stand in a loop; the memory of
            the largest program: arguments, results and scratch; and the
            largest scratch alone.
        """
        written = sorted(self._folder.iterdir())
        graphs = [
            file.read_text()
            for file in written
            if file.name.endswith("before_optimizations.txt")
        ]
        sizes = [
            int(BYTES.search(file.read_text())[1])
            for file in written
            if file.name.endswith("memory-usage-report.txt")
        ]
        scratch = [
            sum(map(int, SCRATCH.findall(file.read_text())))
            for file in written
            if file.name.endswith("buffer-assignment.txt")
        ]
        for file in written:
            file.unlink()
        counts = [count_multiply_adds(graph) for graph in graphs]
        return {
            "programs": len(graphs),
            "multiply_adds": None if None in counts else sum(counts),
            "bytes": max(sizes, default=0),
            "scratch_bytes": max(scratch, default=0),
        }


def count_multiply_adds(graph):
    """Counts the multiply-adds of a program's products and convolutions.

    Those of a convolution with padding count too.

    Args:
        graph: str, the text of a program before XLA rewrites it.

    Returns:
        int, or `None` where there is a loop: how often it runs is not said.
    """
    shapes, total = {}, 0
    for line in graph.splitlines():
        if LOOP.search(line):
            return None
        instruction = INSTRUCTION.match(line)
        if instruction:
            name, shape = instruction.groups()
            shapes[name] = _numbers(shape)
            dot = DOT.search(line)
            if dot:
                left = shapes[dot[1]]
                summed = [left[axis] for axis in _numbers(dot[2])]
                total += math.prod(shapes[name]) * math.prod(summed)
            convolution = CONVOLUTION.search(line)
            if convolution:
                kernel, letters = shapes[convolution[1]], convolution[2]
                # All that leads to one output: but for the axis of outputs.
                outputs = kernel[letters.index("o")]
                each = math.prod(kernel) // outputs
                total += math.prod(shapes[name]) * each
    return total


def _numbers(text):
    return [int(number) for number in text.split(",") if number]

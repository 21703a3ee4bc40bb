"""Multiply-adds and memory of compiled programs, read from XLA's dump files."""

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
    """Reads the files that XLA dumps for each program that it compiles.

    Create it before TensorFlow starts, because XLA reads its flags only once.
    `folder` must be an empty folder; XLA writes its files there.
    """

    def __init__(self, folder):
        self._folder = Path(folder)
        flags = [
            os.environ.get("XLA_FLAGS", ""),
            f"--xla_dump_to={self._folder}",
            "--xla_dump_hlo_as_text",
        ]
        os.environ["XLA_FLAGS"] = " ".join(flags).strip()

    def describe_new(self):
        """Describes the programs that were compiled since the last call.

        Returns `{"programs", "multiply_adds", "bytes", "scratch_bytes"}`: the
        number of programs; the multiply-adds of their matrix products and
        convolutions, or `None` if some of them may be inside a loop; the memory
        of the largest program (arguments, results and scratch space); and the
        largest scratch space.
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
    """Counts the multiply-adds of a program's matrix products and convolutions.

    `graph` is the text of a program before XLA's optimizations. The positions
    of a convolution's padding are counted too. Returns `None` if the program
    has a loop, because the text does not say how often a loop runs.
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
                # Multiply-adds per output: all axes but that of the outputs.
                num_outputs = kernel[letters.index("o")]
                per_output = math.prod(kernel) // num_outputs
                total += math.prod(shapes[name]) * per_output
    return total


def _numbers(text):
    return [int(number) for number in text.split(",") if number]

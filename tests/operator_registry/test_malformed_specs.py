"""Malformed operator specs: each gets every one of its faults, with the line and the remedy."""

import pytest

from tests.operator_registry.small import FILES, OPERATOR, Case, check_case

AXES: dict[str, Case] = {
    "an unknown key": (
        OPERATOR,
        [("multiple_of: 2", "multipleof: 2")],
        [("multipleof", "unknown key axes.segments.multipleof; did you mean 'multiple_of'?")],
    ),
    "an unknown key at the top": (
        OPERATOR,
        [("precision:", "precison:")],
        [("precison", "unknown key precison; did you mean 'precision'?")],
    ),
    "a missing key": (OPERATOR, [("reference: cut\n", "")], [("schema", "reference is missing")]),
    "another version of the schema": (
        OPERATOR,
        [("schema: 1", "schema: 2")],
        [("schema: 2", "schema is the number 2, which is not known; use one of 1")],
    ),
    "a name unlike the folder": (
        OPERATOR,
        [("name: cut", "name: cat")],
        [("name: cat", "name is 'cat', but the folder is 'cut'")],
    ),
    "a name with capitals": (
        OPERATOR,
        [("  longest: {value", "  Longest: {value")],
        [
            ("cut(lengths, offsets, x, longest)", "cut takes no argument 'Longest'"),
            ("cut(lengths, offsets, x, longest)", "needs an argument 'longest'"),
            ("by_mask(lengths", "by_mask takes no argument 'Longest'"),
            ("Longest: {", "use lower-case letters"),
            ("longest: 2", "unknown attribute 'longest'"),
        ],
    ),
    "a range that is empty": (
        OPERATOR,
        [
            ("max: 4096, multiple_of: 2", "max: 7, multiple_of: 16"),
            ("min: 0, max: 7", "min: 3, max: 7"),
        ],
        [("multiple_of: 16", "no multiple of 16 lies in 3..7")],
    ),
    "a size as text": (
        OPERATOR,
        [("max: 4096", "max: 4_096")],
        [("4_096", "should be a whole number, is the text '4_096'; write 4096")],
    ),
    "an axis that no tensor uses": (
        OPERATOR,
        [("dtypes:\n  T: [", "  batch: {max: 8}\ndtypes:\n  T: [")],
        [
            ("batch: {max: 8}", "axes.batch is used by no tensor"),
            ("{segments: 64}", "workload small has no size for the axis batch"),
            ("{segments: 128}", "workload short has no size for the axis batch"),
        ],
    ),
    "an axis that only an output shows": (
        OPERATOR,
        [
            ("dtypes:\n  T: [", "  batch: {max: 8}\ndtypes:\n  T: ["),
            ("shape: [kept]", "shape: [kept, batch]"),
            ("{segments: 64}", "{segments: 64, batch: 1}"),
            ("{segments: 128}", "{segments: 128, batch: 1}"),
        ],
        [("batch: {max: 8}", "axes.batch stands in no input, so nothing tells its size")],
    ),
    "a sum of nothing": (
        OPERATOR,
        [("sum_of: lengths", "sum_of: length")],
        [("sum_of: length}", "names no tensor: 'length'; did you mean 'lengths'?")],
    ),
    "a sum of fractions": (
        OPERATOR,
        [("sum_of: lengths", "sum_of: x")],
        [
            ("sum_of: x", "names x, whose dtype is no integer"),
            ("x: {shape: [elements]", "inputs.x needs itself"),
        ],
    ),
    "a size of an output without a bound": (
        OPERATOR,
        [(", at_most: elements", "")],
        [("kept: {sum_of", "has no at_most, though only the output kept_lengths decides it")],
    ),
    "a bound that is no axis": (
        OPERATOR,
        [("at_most: elements", "at_most: element")],
        [("at_most: element}", "names no axis: 'element'; did you mean 'elements'?")],
    ),
    "offsets of an unknown axis": (
        OPERATOR,
        [("one_more_than: segments", "one_more_than: segment")],
        [
            ("one_more_than: segment}", "names no axis: 'segment'; did you mean 'segments'?"),
            ("offsets: {shape", "declare the axis as `bounds: {one_more_than: segments}`"),
        ],
    ),
}
TENSORS: dict[str, Case] = {
    "an unknown axis": (
        OPERATOR,
        [("shape: [elements]", "shape: [elments]")],
        [
            ("elements: {sum_of", "axes.elements is used by no tensor"),
            ("[elments]", "inputs.x has the unknown axis 'elments'; did you mean 'elements'?"),
        ],
    ),
    "a shape that is no list": (
        OPERATOR,
        [("shape: [elements]", "shape: elements")],
        [("shape: elements,", "inputs.x.shape should be a list, is the text 'elements'")],
    ),
    "an input sized by an output": (
        OPERATOR,
        [("  x: {shape: [elements]", "  x: {shape: [kept]")],
        [
            ("elements: {sum_of", "axes.elements is used by no tensor"),
            ("x: {shape: [kept]", "inputs.x has the axis kept, whose size only an output decides"),
        ],
    ),
    "an unknown dtype": (
        OPERATOR,
        [
            (
                "kept_lengths: {shape: [segments], dtype: int64",
                "kept_lengths: {shape: [segments], dtype: int46",
            )
        ],
        [
            (
                "int46",
                "kept_lengths.dtype is the text 'int46', which is not known; did you mean 'int64'?",
            )
        ],
    ),
    "an open dtype variable": (
        OPERATOR,
        [("y: {shape: [kept], dtype: T", "y: {shape: [kept], dtype: V")],
        [("dtype: V", "outputs.y has the dtype variable V, which dtypes lacks")],
    ),
    "a dtype variable that nothing uses": (
        OPERATOR,
        [("  T: [float32, bfloat16]", "  T: [float32, bfloat16]\n  V: [float32]")],
        [
            ("V: [float32]", "dtypes.V is used by no tensor"),
            ("dtypes: {T: float32}", "workload small leaves the dtype variable V open"),
            ("dtypes: {T: bfloat16}", "workload short leaves the dtype variable V open"),
        ],
    ),
    "a list over an unknown axis": (
        OPERATOR,
        [("x: {shape: [elements], ", "x: {shape: [elements], list_over: parts, ")],
        [("list_over: parts", "inputs.x.list_over names no axis: 'parts'")],
    ),
    "a list over a sum": (
        OPERATOR,
        [("x: {shape: [elements], ", "x: {shape: [elements], list_over: kept, ")],
        [("list_over: kept", "names kept, which has no range; count list members")],
    ),
    "sizes by member outside a list": (
        OPERATOR,
        [
            (
                "lengths: {shape: [segments], dtype: int64, values",
                "lengths: {shape: [segments], list_over: segments, dtype: int64, values",
            )
        ],
        [
            ("of: lengths}}", "inputs.offsets.values.of names lengths, a list over segments"),
            ("x: {shape: [elements]", "add `list_over: segments`"),
            ("at_most: elements", "has a size for each list member; name an axis with one size"),
        ],
    ),
    "one name for two things": (
        OPERATOR,
        [
            (
                "  longest: {value: 4, min: 0, max: 9}",
                "  longest: {value: 4, min: 0, max: 9}\n  kept: {value: 1}",
            )
        ],
        [
            ("kept: {value: 1}", "attributes.kept has the same name as axes.kept"),
            ("cut(lengths, offsets, x, longest)", "cut takes no argument 'kept'"),
            ("by_mask(lengths", "by_mask takes no argument 'kept'"),
        ],
    ),
    "a word of a language as a name": (
        OPERATOR,
        [("  y: {shape", "  register: {shape")],
        [("register: {", "outputs.register is a word of Python, C++ or launch plans; rename it")],
    ),
    "no outputs": (
        OPERATOR,
        [
            ("  kept_lengths: {shape: [segments], dtype: int64}\n", ""),
            ("  y: {shape: [kept], dtype: T}\n", ""),
            ("outputs:", "outputs: {}"),
            ("sum_of: kept_lengths, at_most: elements", "sum_of: lengths"),
        ],
        [("outputs: {}", "outputs is empty"), ("kept: {sum_of", "axes.kept is used by no tensor")],
    ),
    "an empty section": (
        OPERATOR,
        [("  k: 0\n", "")],
        [("precision:", "precision should be a mapping of keys to values, is empty")],
    ),
}
VALUES: dict[str, Case] = {
    "an unknown kind": (
        OPERATOR,
        [("kind: offsets", "kind: offset")],
        [
            (
                "kind: offset,",
                "values.kind is the text 'offset', which is not known; did you mean 'offsets'?",
            )
        ],
    ),
    "no kind": (
        OPERATOR,
        [("{kind: offsets, of: lengths}", "{of: lengths}")],
        [
            (
                "{of: lengths}",
                "inputs.offsets.values has no kind; add `kind:`, one of normal, uniform",
            )
        ],
    ),
    "normal integers": (
        OPERATOR,
        [(", values: {kind: offsets, of: lengths}", "")],
        [("offsets: {shape", "draws normal values (the default) for a dtype without fractions")],
    ),
    "fractional lengths": (
        OPERATOR,
        [
            (
                "x: {shape: [elements], dtype: T",
                "x: {shape: [elements], dtype: T, values: {kind: lengths, high: 2}",
            )
        ],
        [("x: {shape", "inputs.x draws lengths, which are integers, for another dtype")],
    ),
    "lengths from high to low": (
        OPERATOR,
        [("low: 1, high: 9", "low: 10, high: 9")],
        [("low: 10", "inputs.lengths has the empty range 10..9; raise high")],
    ),
    "too few ids": (
        OPERATOR,
        [("{kind: lengths, low: 1, high: 9}", "{kind: sorted_unique_ids, below: 100}")],
        [("below: 100", "can't hold 4096 different ids below 100; raise below to 4096 at least")],
    ),
    "offsets of themselves": (
        OPERATOR,
        [("of: lengths}}", "of: offsets}}")],
        [
            ("of: offsets", "inputs.offsets needs itself"),
            ("of: offsets", "inputs.offsets holds offsets, one more than bounds"),
        ],
    ),
    "ids from an unknown table": (
        OPERATOR,
        [("{kind: lengths, low: 1, high: 9}", "{kind: ids_from, table: tabel}")],
        [("table: tabel", "inputs.lengths.values.table names no input: 'tabel'")],
    ),
    "values that nothing makes": (
        OPERATOR,
        [("{kind: lengths, low: 1, high: 9}", "{kind: made, function: by_masc}")],
        [
            (
                "by_masc",
                "made by 'by_masc', which reference.py does not define; did you mean 'by_mask'?",
            )
        ],
    ),
}
ATTRIBUTES_AND_WORKLOADS: dict[str, Case] = {
    "an attribute with half a range": (
        OPERATOR,
        [("min: 0, max: 9}", "min: 0}")],
        [("min: 0}", "attributes.longest has a range without max; add max")],
    ),
    "an attribute outside its range": (
        OPERATOR,
        [("{value: 4, min: 0, max: 9}", "{value: 14, min: 0, max: 9}")],
        [("value: 14", "attributes.longest is 14, outside its range 0..9")],
    ),
    "an attribute of two types": (
        OPERATOR,
        [("min: 0, max: 9}", "min: 0.5, max: 9}")],
        [("min: 0.5", "attributes.longest mixes whole numbers, fractions or booleans")],
    ),
    "an unknown row axis": (
        OPERATOR,
        [("  k: 0", "  row_axes: [segment]")],
        [("row_axes", "names 'segment', which is no axis of an output; did you mean 'segments'?")],
    ),
    "strides of an unknown input": (
        OPERATOR,
        [("  k: 0", "  strides: [offset]")],
        [("strides", "strides names no input: 'offset'; did you mean 'offsets'?")],
    ),
    "a domain smaller than the draws": (
        OPERATOR,
        [("  k: 0", "  domain: {greatest: 0.5}")],
        [("greatest", "precision.domain.greatest is 0.5, but x draws around 1; raise it")],
    ),
    "a domain beyond the dtype": (
        OPERATOR,
        [("  k: 0", "  domain: {greatest: 1.0e+39}")],
        [("greatest", "is 1e+39, more than x can hold; write 3.3e+38 at most")],
    ),
    "a domain where no value is normal": (
        OPERATOR,
        [
            ("  k: 0", "  domain: {greatest: 5.0}"),
            (
                "  x: {shape: [elements], dtype: T}",
                "  x: {shape: [elements], dtype: T, values: {kind: uniform}}",
            ),
        ],
        [("greatest", "bounds normal values, and no input draws such; remove it")],
    ),
    "a special value without a rule": (
        OPERATOR,
        [("  k: 0", "  domain: {nan: ignored}")],
        [("nan", "precision.domain.nan is the text 'ignored', which is not known; use one of")],
    ),
    "less memory than the baseline": (
        OPERATOR,
        [("  k: 0", "  memory: 0.5")],
        [("memory", "precision.memory is 0.5, must be greater than or equal to 1")],
    ),
    "a tolerance below zero": (
        OPERATOR,
        [("  k: 0", "  c: -1")],
        [("c: -1", "precision.c is -1, must be greater than 0")],
    ),
    "a workload outside the range": (
        OPERATOR,
        [("{segments: 64}", "{segments: 5000}")],
        [("5000", "workload small has segments = 5000, outside 0..4096")],
    ),
    "a workload between the multiples": (
        OPERATOR,
        [("{segments: 64}", "{segments: 65}")],
        [("65", "workload small has segments = 65, no multiple of 2; write 64")],
    ),
    "a workload without a size": (
        OPERATOR,
        [("{segments: 64}", "{}")],
        [("sizes: {}", "workload small has no size for the axis segments")],
    ),
    "a workload with an unknown axis": (
        OPERATOR,
        [("{segments: 64}", "{segments: 64, segmets: 3}")],
        [("segmets", "workload small sizes the unknown axis 'segmets'; did you mean 'segments'?")],
    ),
    "a workload that sizes what the data decide": (
        OPERATOR,
        [("{segments: 64}", "{segments: 64, elements: 640}")],
        [("640", "workload small sizes elements, which follows from the inputs; remove it")],
    ),
    "a workload with an open dtype": (
        OPERATOR,
        [("    dtypes: {T: float32}\n", "")],
        [("- name: small", "workload small leaves the dtype variable T open")],
    ),
    "a workload with another dtype": (
        OPERATOR,
        [("{T: float32}", "{T: float16}")],
        [
            (
                "{T: float16}",
                "binds T to float16, which dtypes does not list; use one of float32, bfloat16",
            )
        ],
    ),
    "a workload with an unknown attribute": (
        OPERATOR,
        [("{longest: 2}", "{longst: 2}")],
        [("longst", "workload short sets the unknown attribute 'longst'; did you mean 'longest'?")],
    ),
    "a workload with an attribute out of range": (
        OPERATOR,
        [("{longest: 2}", "{longest: 20}")],
        [("longest: 20", "workload short sets longest to 20, outside 0..9")],
    ),
    "two workloads of one name": (
        OPERATOR,
        [("name: short", "name: small")],
        [("- name: small\n    sizes: {segments: 128}", "workload small stands here again")],
    ),
    "two workloads that measure the same": (
        OPERATOR,
        [
            (
                "    targets: [cpu]\n",
                """\
    targets: [cpu]
  - name: again
    sizes: {segments: 128}
    dtypes: {T: bfloat16}
    attributes: {longest: 2}
""",
            )
        ],
        [("again", "workload again measures the same as short")],
    ),
    "an unknown target": (
        OPERATOR,
        [("targets: [cpu]", "targets: [gpu]")],
        [("targets: [gpu]", "workloads[1].targets[0] is the text 'gpu', which is not known")],
    ),
    "no workloads": (
        OPERATOR,
        [(FILES[OPERATOR][FILES[OPERATOR].index("workloads:") :], "workloads: []\n")],
        [("workloads: []", "workloads is empty; add at least one entry")],
    ),
}
CASES = {**AXES, **TENSORS, **VALUES, **ATTRIBUTES_AND_WORKLOADS}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_fault_is_told_with_its_line_and_remedy(case: Case) -> None:
    check_case(case)

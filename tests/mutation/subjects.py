"""Which files are mutated, and which tests are run against the mutants of each.

The tests were chosen for what they say per second of processor time: uncompiled, those of a file take
a few seconds together. The first to fail ends a trial, so that the quickest stand first.
"""

#: Seconds of processor time that a test may take beyond five times what it takes unmutated.
LIMIT = 2.0

_LETTER = "tests/test_measures_to_the_letter.py"
_NULLS = "tests/test_nulls_to_the_letter.py"
_ENTRIES = "tests/test_entries_to_the_letter.py"
_RESULTS = ["tests/test_results_to_the_letter.py", "tests/test_results.py::"]
_BY_HAND = [
    "tests/test_measures.py::test_confidence_ece_by_hand",
    "tests/test_measures.py::test_a_tie_in_the_argmax",
    "tests/test_measures.py::test_classwise_ece_by_hand",
    "tests/test_measures.py::test_an_edge_counts",
    "tests/test_measures.py::test_hosmer_lemeshow_by_hand",
    "tests/test_measures.py::test_hosmer_lemeshow_shares",
    "tests/test_measures.py::test_what_was_ruled_out",
    "tests/test_measures.py::test_a_part_that_holds",
    "tests/test_measures.py::test_an_infinite_cell",
    "tests/test_measures.py::test_skce_by_hand",
]
_PASSES = [
    "tests/test_passes.py::test_a_label_without_an_entry",
    "tests/test_passes.py::test_a_pass_over_entries_is_algorithm_1[50-7-",
    "tests/test_passes.py::test_a_pass_over_entries_is_algorithm_1[257-7-Conf",
    "tests/test_passes.py::test_a_pass_over_all_predictions",
    "tests/test_passes.py::test_certainty_and_impossibility",
    "tests/test_passes.py::test_passes_are_worth_while",
    "tests/test_passes.py::test_an_offset_is_subtracted",
]
_STACKED = [
    "tests/test_stacked.py::test_a_model_that_says_nothing",
    "tests/test_stacked.py::test_what_the_calibrated",
    "tests/test_stacked.py::test_certain_predictions",
    "tests/test_stacked.py::test_the_departure_has",
    "tests/test_stacked.py::test_laws_are_distributions",
    "tests/test_stacked.py::test_labels_of_a_replicate",
    "tests/test_stacked.py::test_the_pool_is_the_maximum",
]


def _contract(name):
    return [f"tests/test_measure_contract.py::*{name}"]


#: Beginnings of the names of tests, in the order in which they are run; after ``*``, what a name holds.
TESTS = {
    "src/hullcal/measures/__init__.py": ["tests/test_measure_contract.py::", _LETTER],
    "src/hullcal/measures/_all_pairs.py": [_LETTER, *_BY_HAND[9:]],
    "src/hullcal/measures/_base.py": [_LETTER, _ENTRIES, "tests/test_measure_contract.py::"],
    "src/hullcal/measures/_custom.py": ["tests/test_measure_contract.py::*custom", _LETTER],
    "src/hullcal/measures/ece_conf.py": [
        *_BY_HAND[:4],
        _ENTRIES,
        _LETTER,
        *_contract("ece_conf"),
        *_PASSES,
    ],
    "src/hullcal/measures/ece_cwise.py": [
        *_BY_HAND[:4],
        _ENTRIES,
        _LETTER,
        *_contract("ece_cwise"),
        *_PASSES,
    ],
    "src/hullcal/measures/hl_cwise.py": [*_BY_HAND[4:9], _LETTER, *_contract("hl_cwise")],
    "src/hullcal/measures/skce.py": [*_BY_HAND[9:], _LETTER, *_contract("skce")],
    "src/hullcal/nulls/__init__.py": [_NULLS],
    "src/hullcal/nulls/_base.py": [_NULLS],
    "src/hullcal/nulls/_journal.py": [_NULLS],
    "src/hullcal/nulls/_passes.py": [_ENTRIES, *_PASSES, _NULLS],
    "src/hullcal/nulls/_pool.py": [_NULLS, *_STACKED],
    "src/hullcal/nulls/_single.py": [_NULLS],
    "src/hullcal/nulls/_worlds.py": [_NULLS, *_STACKED],
    "src/hullcal/nulls/maximized.py": [_NULLS],
    "src/hullcal/nulls/paper.py": [_NULLS, _ENTRIES],
    "src/hullcal/nulls/recentered.py": [_NULLS],
    "src/hullcal/nulls/refit.py": [_NULLS],
    "src/hullcal/nulls/stacked.py": [_NULLS, *_STACKED],
    "src/hullcal/binning.py": [
        "tests/test_binning.py::test_the_edges_that",
        "tests/test_binning.py::test_edges_are_quotients",
        "tests/test_binning.py::test_a_zero_that",
        "tests/test_binning.py::test_a_one_that",
        "tests/test_binning.py::test_an_edge_belongs",
        "tests/test_binning.py::test_company",
        "tests/test_binning.py::test_an_empty_bin",
        "tests/test_binning.py::test_the_reliability_table_against_a_literal_loop",
        "tests/test_binning.py::test_a_reliability_table",
        _LETTER,
    ],
    "src/hullcal/results.py": _RESULTS,
    "src/hullcal/words.py": _RESULTS,
}
#: What uncompiled takes too long to be run so often.
SLOW = (
    "test_the_order_of_rows",
    "test_a_real_result_survives_json",
    "test_results_of_settings_in_any_type",
    "test_the_hypothesis_of_the_null",
)


def of(file, names):
    """The tests of a file among the names of all, in order and each once."""
    found = {}
    for pattern in TESTS[file]:
        begins, _, holds = pattern.partition("*")
        for name in names:
            if name.startswith(begins) and holds in name and not any(s in name for s in SLOW):
                found[name] = None
    return list(found)


def files_of_tests():
    """Every file with a test in `TESTS`."""
    return sorted({each.partition("::")[0] for tests in TESTS.values() for each in tests})

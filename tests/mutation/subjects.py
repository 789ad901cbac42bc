"""Which files are mutated, and which tests are run against the mutants of each.

The tests were chosen for what they say per second of processor time: uncompiled, those of a file take
a few seconds together. The first to fail ends a trial, so that the quickest stand first.
"""

#: Seconds of processor time that a test may take beyond five times what it takes unmutated.
LIMIT = 2.0

_MEASURES = "tests/test_measures.py::test_"
_BY_HAND = [
    f"{_MEASURES}{name}"
    for name in (
        "confidence_ece_by_hand",
        "a_tie_in_the_argmax",
        "classwise_ece_by_hand",
        "an_edge_counts",
        "smooth_confidence",
        "smooth_classwise",
        "one_smooth_bin",
    )
]
_HL_BY_HAND = [
    f"{_MEASURES}{name}"
    for name in (
        "hosmer_lemeshow_by_hand",
        "hosmer_lemeshow_shares",
        "what_was_ruled_out",
        "a_part_that_holds",
        "an_infinite_cell",
        "the_first_part",
        "the_two_smallest",
        "rows_in_any_disorder",
    )
]
_SKCE_BY_HAND = [f"{_MEASURES}skce_by_hand", f"{_MEASURES}the_unbiased"]
_LAWS = [
    f"{_MEASURES}{name}"
    for name in (
        "settings_are_given",
        "what_working_memory",
        "no_offset_changes",
        "the_data_recentered",
        "the_offset_is",
        "skce_ul_drops",
        "the_measures_that_add_up",
        "blocks_of_rows",
        "binned_measures_with_fewer",
    )
]
_PAIRS = [f"{_MEASURES}all_pairs_across_the_edges_of_blocks[{n}" for n in ("uq-127", "b-129")]
_ENTRIES = [
    f"tests/test_entries.py::test_{name}"
    for name in (
        "a_label_without_an_entry",
        "a_class_is_left_out",
        "the_classes_that_may_dominate",
        "a_probability_on_the_first_edge",
        "smooth_classwise",
        "drawn_rows_from_entries",
        "a_pass_in_several_blocks_of_rows_is_algorithm_1[2-50",
        "a_pass_in_several_blocks_of_rows_is_algorithm_1[5-50",
        "a_pass_in_several_blocks_of_rows_is_algorithm_1[12-257-Conf",
        "certainty_and_impossibility",
        "replicates_in_passes_are_those_one_by_one[True",
        "entries_give_the_value",
    )
]
_LOOP = [
    f"tests/test_loop.py::test_{name}"
    for name in (
        "blocks_are",
        "threads_share",
        "under_the_null",
        "known_replicates",
        "a_journal_of",
        "a_null_whose",
        "stopping_cuts_the_full_run_short_by_the_rule[1-paper]",
    )
]
_NULLS = [
    f"tests/test_nulls.py::test_{name}"
    for name in (
        "the_score",
        "combinations_are_told",
        "a_null_says",
        "refit_draws",
        "the_minimum_of_a_recentered",
        "the_note_of_recentered",
        "an_infinite_statistic",
        "permuted_rows",
        "the_paper_resamples",
        "labels_that_no_combination",
        "a_search_that_was_cut_short",
        "a_recentered_value",
        "the_maximized_result_is_that_of_its_weights[2-ece_conf]",
    )
]
_STACKED = [
    f"tests/test_stacked.py::test_{name}"
    for name in (
        "a_balanced",
        "groups",
        "predicted_classes",
        "entries",
        "a_departure_is_settled",
        "a_model_that_says_nothing",
        "what_the_calibrated",
        "certain_predictions",
        "a_settled_departure",
        "labels_of_a_replicate",
        "the_pool_is",
        "identical_centres",
        "stacked_counts",
        "parts_of_the_work",
        "a_journal_keeps",
        "the_largest_p_value_of_the_centres_counts[1-3]",
    )
]
_RESULTS = ["tests/test_results.py::"]


def _contract(name):
    return [f"tests/test_measure_contract.py::*{name}"]


#: Beginnings of the names of tests, in the order in which they are run; after ``*``, what a name holds.
TESTS = {
    "src/hullcal/measures/__init__.py": ["tests/test_measure_contract.py::"],
    "src/hullcal/measures/_all_pairs.py": [*_SKCE_BY_HAND, *_LAWS, *_PAIRS],
    "src/hullcal/measures/_base.py": [*_LAWS, *_ENTRIES, "tests/test_measure_contract.py::"],
    "src/hullcal/measures/_custom.py": ["tests/test_measure_contract.py::*callable"],
    "src/hullcal/measures/ece_conf.py": [*_BY_HAND, *_LAWS, *_contract("ece_conf"), *_ENTRIES],
    "src/hullcal/measures/ece_cwise.py": [*_BY_HAND, *_LAWS, *_contract("ece_cwise"), *_ENTRIES],
    "src/hullcal/measures/hl_cwise.py": [*_HL_BY_HAND, *_LAWS, *_contract("hl_cwise")],
    "src/hullcal/measures/skce.py": [*_SKCE_BY_HAND, *_LAWS, *_contract("skce"), *_PAIRS],
    "src/hullcal/nulls/__init__.py": _NULLS,
    "src/hullcal/nulls/_base.py": _NULLS,
    "src/hullcal/nulls/stacked.py": _STACKED,
    "src/hullcal/nulls/maximized.py": _NULLS,
    "src/hullcal/nulls/paper.py": [*_NULLS, "tests/test_nulls.py::test_line_3"],
    "src/hullcal/nulls/recentered.py": _NULLS,
    "src/hullcal/nulls/refit.py": _NULLS,
    "src/hullcal/objectives/resampled.py": [*_ENTRIES, *_NULLS],
    "src/hullcal/resampling.py": _LOOP,
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
        *_BY_HAND,
    ],
    "src/hullcal/notes.py": _RESULTS,
    "src/hullcal/results.py": _RESULTS,
    "src/hullcal/words.py": _RESULTS,
}
#: What uncompiled takes too long to be run so often.
SLOW = (
    "test_the_order_of_rows",
    "test_a_real_result_survives_json",
    "test_results_of_settings_in_any_type",
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

"""Which files are mutated, and which tests are run against the mutants of each.

The tests were chosen for what they say per second of processor time: uncompiled, those of a file take
a few seconds together. The first to fail ends a trial, so that the quickest stand first.
"""

#: Seconds of processor time that tests may take beyond five times what they take unmutated.
LIMIT = 10.0


def _named(file, beginnings):
    return [f"tests/test_{file}.py::test_{each}" for each in beginnings.split()]


_BY_HAND = _named(
    "measures",
    "confidence_ece_by_hand a_tie_in_the_argmax classwise_ece_by_hand an_edge_counts "
    "smooth_confidence smooth_classwise one_smooth_bin",
)
_HL_BY_HAND = _named(
    "measures",
    "hosmer_lemeshow_by_hand hosmer_lemeshow_shares what_was_ruled_out a_part_that_holds "
    "an_infinite_cell the_two_smallest rows_in_any_disorder",
)
_SKCE_BY_HAND = _named("measures", "skce_by_hand")
_LAWS = _named(
    "measures",
    "settings_are_given what_working_memory a_recentered_replicate "
    "the_offset_is the_measures_that_add_up blocks_of_rows "
    "binned_measures_with_fewer",
)
_PAIRS = _named(
    "measures",
    "all_pairs_across_the_edges_of_blocks[uq-127 all_pairs_across_the_edges_of_blocks[b-129 "
    "labellings_taken_together_have_the_values_that_they_have_alone[129-2",
)
_ENTRIES = _named(
    "entries",
    "a_label_without_an_entry a_class_is_left_out a_probability_on_the_first_edge "
    "smooth_classwise drawn_rows_from_entries a_pass_in_several_blocks "
    "certainty_and_impossibility replicates_in_passes entries_give_the_value",
)
_NULLS = _named(
    "nulls",
    "of_equal_counts a_null_says refit_draws an_infinite_statistic "
    "permuted_rows labels_that_no_combination a_search_that_was_cut_short a_recentered_value "
    "the_maximized_result",
)
_STACKED = _named(
    "stacked",
    "a_balanced groups predicted_classes entries a_departure_is_settled "
    "a_model_that_says_nothing what_the_calibrated labels_of_a_replicate the_pool_is "
    "stacked_counts a_journal_keeps the_largest_p_value",
)
_BINS = _named(
    "binning",
    "the_edges_that edges_are_quotients a_zero_that a_one_that every_edge company "
    "an_empty_bin the_reliability_table_against_a_literal_loop",
)
_LOOP, _RESULTS = ["tests/test_loop.py::"], ["tests/test_results.py::"]


def _contract(name):
    return [f"tests/test_measure_contract.py::*{name}"]


#: Beginnings of the names of tests, in the order in which they are run; after ``*``, what a name holds.
TESTS = {
    "src/hullcal/measures/__init__.py": ["tests/test_measure_contract.py::"],
    "src/hullcal/measures/_base.py": [*_LAWS, *_ENTRIES, "tests/test_measure_contract.py::"],
    "src/hullcal/measures/_ece.py": [*_BY_HAND, *_LAWS, *_contract("ece"), *_ENTRIES],
    "src/hullcal/measures/ece_conf.py": [*_BY_HAND, *_LAWS, *_contract("ece_conf"), *_ENTRIES],
    "src/hullcal/measures/ece_cwise.py": [*_BY_HAND, *_LAWS, *_contract("ece_cwise"), *_ENTRIES],
    "src/hullcal/measures/hl_cwise.py": [*_HL_BY_HAND, *_LAWS, *_contract("hl_cwise")],
    "src/hullcal/measures/skce.py": [*_SKCE_BY_HAND, *_LAWS, *_contract("skce"), *_PAIRS],
    "src/hullcal/nulls/__init__.py": _NULLS,
    "src/hullcal/nulls/_base.py": _NULLS,
    "src/hullcal/nulls/maximized.py": _NULLS,
    "src/hullcal/nulls/paper.py": [*_NULLS, "tests/test_nulls.py::test_lines_1_to_5"],
    "src/hullcal/nulls/recentered.py": _NULLS,
    "src/hullcal/nulls/stacked.py": _STACKED,
    "src/hullcal/objectives/lines_2_4_5.py": [*_ENTRIES, *_NULLS],
    "src/hullcal/resampling.py": _LOOP,
    "src/hullcal/binning.py": [*_BINS, *_BY_HAND],
    "src/hullcal/notes.py": _RESULTS,
    "src/hullcal/results.py": _RESULTS,
    "src/hullcal/words.py": _RESULTS,
}
#: What uncompiled takes too long to be run so often.
SLOW = (
    *("test_the_order_of_rows", "test_every_world_stops"),
    *("test_results_of_settings_in_any_type", "test_threads_change_nothing"),
)


def of(file, names):
    """The tests of a file among the names of all, in order and each once."""
    found = {}
    for pattern in TESTS[file]:
        begins, _, holds = pattern.partition("*")
        own = [name for name in names if name.startswith(begins) and holds in name]
        if not own:
            raise ValueError(f"no test is called {pattern}, which is to be run for {file}")
        found |= dict.fromkeys(name for name in own if not any(slow in name for slow in SLOW))
    return list(found)


def files_of_tests(file):
    """Where the tests of a file are."""
    return sorted({each.partition("::")[0] for each in TESTS[file]})

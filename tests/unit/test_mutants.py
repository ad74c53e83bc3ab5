"""Planted mistakes stand where their lists say."""

from tests.mutants.places import place_of, replaced, texts_of, unknown_names
from tests.mutants.planted import MUTANTS, ROOT


def test_every_mutant_has_a_name_of_its_own_one_place_and_tests_that_are_there():
    """A change that rewrites or renames what a mutant changes is seen here: mend the mutant."""
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)
    texts = texts_of(ROOT)
    for each in MUTANTS:
        assert each.caught_by, each.name
        place, span = place_of(each.at, each.old, texts)
        if place.suffix == ".py":
            planted = replaced(texts[place], span, each.new)
            assert unknown_names(planted) <= unknown_names(texts[place]), each.name
        for test in each.caught_by:
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(), test

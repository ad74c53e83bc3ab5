"""Events: records that survive JSON and refuse what cannot have happened."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphh.errors import UsageError
from dphh.privacy.events import (
    ChosenUnionEvent,
    DeltaEvent,
    EpsilonDeltaEvent,
    GaussianEvent,
    OneDirectionEvent,
    SetUnionEvent,
    event_from_json,
)

probabilities = st.floats(0, 1)
noise = st.floats(1e-3, 1e9)
events = st.one_of(
    st.builds(GaussianEvent, st.floats(1e-3, 1e9), st.text()),
    st.builds(DeltaEvent, probabilities, st.text()),
    st.builds(SetUnionEvent, st.floats(1e-3, 1e9), probabilities, st.text()),
    st.builds(ChosenUnionEvent, noise, noise, probabilities, noise, probabilities),
    st.builds(EpsilonDeltaEvent, st.floats(0, 1e3), probabilities, st.text()),
    st.builds(OneDirectionEvent, st.floats(0, 1e3), probabilities, st.text()),
)


@given(events)
def test_an_event_comes_back_from_json_as_it_was(event):
    back = event_from_json(json.loads(json.dumps(event.to_json())))
    assert (back, back.note) == (event, event.note)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, True, None])
def test_a_sigma_that_cannot_be_is_refused(sigma):
    with pytest.raises(UsageError, match=r"sigma of an event of kind gaussian .* above 0"):
        GaussianEvent(sigma)

"""The two forms of a test that stands for a report: a short one for each run, and a long one, for ``--long``."""

import pytest

#: For ``@pytest.mark.parametrize("long", FORMS)``.
FORMS = [False, pytest.param(True, marks=pytest.mark.long_form)]

"""Options of an answer (`answer_options.py`), settings of the app (`settings.py`), and the settings that may
change while it runs (`controls.py`)."""

from omnidemo.core.config.answer_options import (
    GREEDY,
    SAMPLING,
    GenerationConfig,
    Manner,
    option_named,
    option_of,
    shown_by,
    type_of,
)
from omnidemo.core.config.refusals import ModelError, check_text, refusal, shortened
from omnidemo.core.config.settings import (
    ARITHMETIC,
    DEFAULT,
    DRAFTER,
    DRAFTING,
    EMBEDDED_TARGET,
    REAL_DRAFTER,
    Arithmetic,
    Settings,
    changed,
    of_kubernetes,
    otherwise,
)

__all__ = [
    "ARITHMETIC", "DEFAULT", "DRAFTER", "DRAFTING", "EMBEDDED_TARGET", "GREEDY", "REAL_DRAFTER",
    "SAMPLING", "Arithmetic", "GenerationConfig", "Manner", "ModelError", "Settings", "changed", "check_text",
    "of_kubernetes", "option_named", "option_of", "otherwise", "refusal", "shortened", "shown_by", "type_of",
]  # fmt: skip

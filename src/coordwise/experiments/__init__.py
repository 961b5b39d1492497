"""The tables and figures of the paper, computed again (extras ``plot`` and ``cli``)."""

from coordwise.experiments.catalogue import EXPERIMENTS, Experiment
from coordwise.experiments.run import Outcome, reproduce
from coordwise.experiments.settings import Settings
from coordwise.experiments.verdicts import Claim, Verdict

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Outcome", "Settings", "Verdict", "reproduce"]

"""The tables and figures of the paper, computed again (extras ``plot`` and ``cli``)."""

from coordwise.experiments.catalogue import EXPERIMENTS, Experiment
from coordwise.experiments.claims import Claim, Verdict
from coordwise.experiments.run import Outcome, reproduce
from coordwise.experiments.settings import Settings

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Outcome", "Settings", "Verdict", "reproduce"]

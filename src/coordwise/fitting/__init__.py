"""Fitting linear models with an intercept: formulations, and which of them to use."""

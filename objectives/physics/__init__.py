"""What one kernel, one collective, one schedule costs: pure functions over arrays of configs.

Every function takes arrays of shape (n,), one entry per config, and gives arrays of shape (n,).
Nothing here knows the tuner: backends compose these functions and speak to it.
"""

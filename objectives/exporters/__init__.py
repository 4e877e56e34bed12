"""A config written down for the programs that run it.

Each module has ``export(design_point, config)``, which gives texts by file name. What it writes
is checked against the option list of one named version of the program, kept as data beside the
code. A config that the program cannot express is refused by `autotune.Unsupported`, naming the
knob, its value and what would be expressible; nothing is left out silently: a knob that another
program sets is written as a comment.
"""

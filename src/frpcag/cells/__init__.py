"""Which cells are wrong, and what they should be.

``units`` and ``feature_graphs`` prepare the data; ``metric`` finds similar rows in spite of wrong cells;
``predictors``, ``low_rank`` and ``columns`` predict each cell; ``mixture`` and ``repeats`` give the probability that it
is wrong; ``guard`` and ``evenness`` decide whether to keep the flags.
"""

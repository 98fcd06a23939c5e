"""Which cells are wrong, and what they should be.

``units`` and ``feature_graphs`` prepare the data; ``metric`` finds rows that are alike in spite of wrong cells;
``predictors``, ``low_rank`` and ``columns`` say what a cell should be; ``mixture`` and ``repeats`` give the probability
that it is wrong; ``guard`` and ``evenness`` decide whether to believe it.
"""

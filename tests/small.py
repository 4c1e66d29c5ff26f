"""A small design with rows and parameters, for tests of what runs it."""

import numpy as np

from hwnorm import RMSNorm

SMALL = RMSNorm(dim=8, lanes=2, x="s8/4", gamma="s8/6", y="s10/6")
X = np.arange(-16, 16).reshape(4, 8)
GAMMA = np.arange(40, 80, 5)

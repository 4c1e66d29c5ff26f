"""``python -m hwnorm``."""

import sys

from hwnorm.cli import main

sys.exit(main())

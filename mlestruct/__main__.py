"""``python -m mlestruct``."""

import sys

from mlestruct.cli import main

sys.exit(main())

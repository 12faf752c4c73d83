"""``python -m mlestruct``."""

import sys

from mlestruct.cli import main

if __name__ == "__main__":
    sys.exit(main())

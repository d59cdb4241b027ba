"""MiniStack, as strict as AWS in what the bus relies on.

Run by local-aws/ministack in its own virtual environment.
"""

import sys

from ministack.app import main

if __name__ == "__main__":
    sys.argv = ["ministack"]
    main()
